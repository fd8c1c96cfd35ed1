// A channel's status over time: a bar to see it at a glance, and the list to read it.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { query, setQuery } from '../router.js';
import { now } from '../state.js';
import { texts, duration, day, clock, percent } from '../i18n.js';
import { Button } from '../parts/button.js';
import { Card, Failed, Loading } from '../parts/card.js';
import { ChannelStatus, channelTone, Reason, reasonText } from '../parts/channel_status.js';
import { Timeline } from '../parts/chart.js';
import { Time } from '../parts/time.js';
import { Trends } from '../parts/trends.js';

const t = texts('channel');
const core = texts('core');

const periods = ['1', '7', '30'];
const first = 50; // entries that are listed unless all are wanted

export const History = ({ channel }) => html`<${Statuses} channel=${channel} /><${Trends} channel=${channel.code} span=${query.value.span}
  onSpan=${(span) => setQuery({ span }, { replace: true })} />`;

function Statuses({ channel }) {
  const [all, setAll] = useState(false);
  const days = periods.includes(query.value.days) ? query.value.days : '1';
  const load = useLoad(async () =>
    ({ days, entries: (await api.get(`/manage/channels/${channel.code}/timeline`, { query: { days } })).data }),
    [days, channel.status, channel.since]);
  const to = now.value;
  // A young channel has no earlier status: its bar begins with it.
  const from = Math.min(to - 60_000, Math.max(to - (load.data?.days ?? days) * 86_400_000, Date.parse(channel.created_at)));
  const spans = load.data ? toSpans(load.data.entries, channel, to) : [];
  const totals = sum(spans, from);
  const known = totals.reduce((all, [, ms]) => all + ms, 0);
  const words = totals.map(([status, ms]) => `${core(`channel.${status}`)} ${percent(ms, known)}`).join(', ');
  const list = spans.toReversed();
  const unknown = Math.max(0, to - from - known);
  const short = to - from < 2 * 86_400_000;
  const ends = [from, to].map((at) => `${day(at)}${short ? ` ${clock(at).slice(0, 5)}` : ''}`);
  return html`<${Card} title=${t('history')}
    actions=${html`<div class="chips" role="group" aria-label=${t('days')}>${periods.map((n) => html`
      <button key=${n} type="button" class="chip" aria-pressed=${String(n === days)}
        onClick=${() => setQuery({ days: n === '1' ? null : n }, { replace: true })}>${t(`days.${n}`)}</button>`)}</div>`}>
    ${load.error ? html`<${Failed} load=${load} />` : !load.data ? html`<${Loading} rows=${3} />` : !spans.length
      ? html`<p class="muted">${t('noHistory')}</p>` : html`
      <div><${Timeline} label=${words} spans=${spans.map((span) => ({ ...span, text: reasonText(span.text) }))} from=${from} to=${to} />
        <div class="spread plot-axis"><span>${ends[0]}</span><span>${ends[1]}</span></div></div>
      <ul class="legend">${totals.map(([status, ms]) => html`<li key=${status}><${ChannelStatus} status=${status} /> <b>
        ${percent(ms, known)}</b> ${duration(ms)}</li>`)}
        ${unknown > (to - from) / 200 && html`<li><i class="swatch unknown" aria-hidden="true" />
        ${t('unknown')} ${duration(unknown)}</li>`}</ul>
      ${spans.some((span) => span.to > from && span.to - span.from < (to - from) / 150) && html`<p class="hint">${t('widened')}</p>`}
      <ol class="history">${list.slice(0, all ? undefined : first).map((span) => html`<li key=${span.from}>
        <${Time} at=${new Date(span.from).toISOString()} /><${ChannelStatus} status=${span.status} /><span class="grow">
          <${Reason} text=${span.text} /></span>
        <span class="muted">${span.open ? t('goesOn', { time: duration(to - span.from) }) : duration(span.to - span.from)}</span>
          </li>`)}</ol>
      ${list.length > first && !all && html`<${Button} kind="quiet" onClick=${() => setAll(true)}>${t('older', { n: list.length })}<//>`}`}
  <//>`;
}

// Each change lasts until the next one. Without any the channel has been as it is.
function toSpans(entries, channel, to) {
  const changes = entries.length ? entries : [{ status: channel.status, reason: channel.reason, at: channel.since }];
  const sorted = changes.map((entry) => ({ ...entry, from: Date.parse(entry.at) })).sort((a, b) => a.from - b.from);
  return sorted.map(({ status, reason, from }, i) => {
    const next = sorted[i + 1];
    return { status, tone: channelTone[status], text: reason, from, to: Math.max(from, next ? next.from : to), open: !next };
  });
}

function sum(spans, from) {
  const totals = new Map();
  for (const { status, from: began, to } of spans) {
    const ms = to - Math.max(from, began);
    if (ms > 0) totals.set(status, (totals.get(status) || 0) + ms);
  }
  return [...totals].sort((a, b) => b[1] - a[1]);
}
