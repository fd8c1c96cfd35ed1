// One channel: its status, the evidence for it, and its actions.
import { html, lazy, useEffect, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { useKeys } from '../keys.js';
import { useEvents } from '../live.js';
import { go, href, query, setQuery } from '../router.js';
import { networkBy, now, reloadChannels, server, useSecond, hasRole } from '../state.js';
import { texts, num, duration, full, day, clock, percent } from '../i18n.js';
import { Head, Empty, Loading, Failed, Card } from '../parts/card.js';
import { AccountFields, networkTitle, toAccount } from '../parts/account.js';
import { ChannelTabs } from '../parts/channel_tabs.js';
import { Labels } from '../parts/labels.js';
import { Button, Copy, copyText } from '../parts/button.js';
import { AsCode } from '../parts/code.js';
import { confirm, Dialog } from '../parts/dialog.js';
import { Badge, ChannelStatus, channelTone, Reason, reasonText } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { Who, mask } from '../parts/who.js';
import { Settings, Danger, WhoMay, numbers, requireNumbers } from './channel_settings.js';
import NotFound from './notfound.js';
import { Timeline } from '../parts/chart.js';
import { Trends } from '../parts/trends.js';
import { useForm, Form, Field, Submit, NeedsRole } from '../parts/form.js';
import { toast } from '../parts/toast.js';

const PairPanel = lazy(() => import('./channel_pair.js').then((module) => module.PairPanel));
const AccountPanel = lazy(() => import('./channel_account.js').then((module) => module.AccountPanel));
const Templates = lazy(() => import('./channel_templates.js').then((module) => module.Templates));
const Requests = lazy(() => import('./channel_requests.js').then((module) => module.Requests));

const t = texts('channel');
const core = texts('core');

const others = ['messages', 'webhooks']; // tabs that are pages of their own, with the same tabs above them
const own = ['', 'pair', 'requests', 'templates', 'settings', 'danger'];

export default function Page({ route }) {
  const { code, tab = '' } = route.params;
  const other = others.includes(tab);
  useEffect(() => { if (other) go(`/${tab}`, { channel: code }, { replace: true }); }, [tab]);
  if (other) return null;
  return own.includes(tab) ? html`<${Channel} key=${code} code=${code} tab=${tab} />` : html`<${NotFound} route=${route} />`;
}

function Channel({ code, tab }) {
  const load = useLoad(async () => (await api.get(`/manage/channels/${encodeURIComponent(code)}`)).data, [now.value]);
  useEvents(['channel.'], (events) => { if (events.some((event) => event.channel === code)) load.reload(); });
  useKeys([['y', core('copy', { what: t('code') }), () => copyText(code, t('code'))]]);
  const changed = () => Promise.all([load.reload(), reloadChannels()]);
  const back = { href: href('/channels'), label: core('page.channels') };
  const channel = load.data;
  if (load.error?.status === 404) return html`<${Head} title=${code} back=${back} />
    <${Empty} icon="channels" title=${t('gone', { code })} />`;
  if (!channel) return html`<${Head} title=${code} back=${back} />
    ${load.error ? html`<${Failed} load=${load} />` : html`<${Loading} rows=${4} />`}`;
  return html`
    <${Head} title=${mask(channel.name)} back=${back} lead=${html`<${Lead} of=${channel} />`}
      actions=${html`<${Actions} of=${channel} changed=${changed} pairing=${tab === 'pair'} />`}>
      <p class="row channel-facts"><${ChannelStatus} status=${channel.status} /><span class="row nowrap"><code>${code}</code>
        <${Copy} text=${code} what=${t('code')} /></span>
        <${Badge} tone=${channel.simulated ? 'warn' : 'good'}>${channel.network}<//>
          ${channel.number && html`<${Who} number=${channel.number} />`}
        <a href=${href('/tokens', { channel: code })}>${t('tokens')}</a><${Labels} of=${channel.labels} /></p>
    <//>
    ${tab !== 'pair' && html`<${Evidence} of=${channel} />`}
    <${ChannelTabs} code=${code} current=${tab} />
    ${['pair', 'danger'].includes(tab) && !hasRole('operator') ? html`<${NeedsRole} role="operator" />` : tab === 'pair'
      ? !server.value ? html`<${Loading} />` : hasAccount(channel) ? html`<${AccountPanel} channel=${channel} changed=${changed} />`
        : html`<${PairPanel} channel=${channel} goLive=${() => setQuery({ golive: 1 })} changed=${changed} /><${Evidence} of=${channel} />`
      : tab === 'templates' ? html`<${Templates} channel=${channel} />`
      : tab === 'requests' ? html`<${Requests} channel=${channel} />`
      : tab === 'settings' ? html`<${Settings} channel=${channel} changed=${changed} />`
        : tab === 'danger' ? html`<${Danger} channel=${channel} changed=${changed} />`
          : html`<${History} channel=${channel} /><${Trends} channel=${channel.code} span=${query.value.span}
            onSpan=${(span) => setQuery({ span }, { replace: true })} />`}
    ${query.value.golive && channel.simulated && html`<${GoLive} channel=${channel} changed=${changed} />`}`;
}

// The sentence that a support person would say.
const Lead = ({ of: channel }) => html`${t(`is.${channel.status}`, { time: html`<${Time} at=${channel.since} ago />` })} <${Reason}
  text=${channel.reason} />${
  channel.restricted_until && html` ${t('restricted', { time: html`<${Time} at=${channel.restricted_until} />` })}`}${
  channel.waiting > 0 && html` <a href=${href('/messages', { channel: channel.code, q: 'status:pending' })}>
    ${t('waits', { n: channel.waiting })}</a>`}`;

const hasAccount = (channel) => networkBy(channel.network)?.credentials.length > 0;

const unpaired = ['SCAN_QR_CODE', 'LOGGED_OUT', 'FAILED'];

function Actions({ of: channel, changed, pairing }) {
  const { code } = channel;
  const post = (verb) => async () => {
    if (verb === 'stop' && !await confirm({ title: t('stopTitle', { code }), text: t('stopText'), action: t('stop'),
      danger: true })) return;
    await api.post(`/manage/channels/${code}/${verb}`);
    await changed();
  };
  const sandbox = channel.simulated;
  return html`<${AsCode} request=${{ path: `/api/manage/channels/${code}` }} />
    ${channel.enabled ? html`<${Button} key="stop" need="operator" icon="stop" onClick=${post('stop')}>${t('stop')}<//>`
      : html`<${Button} key="start" need="operator" icon="play" onClick=${post('start')}>${t('start')}<//>`}
    ${sandbox && !pairing && html`<${Button} need="operator" kind="primary" icon="bolt" onClick=${() => setQuery({ golive: 1 })}>
      ${t('goLive')}<//>`}
    ${!pairing && unpaired.includes(channel.status) &&
      html`<${Button} need="operator" kind="primary" icon=${hasAccount(channel) ? 'tokens' : 'qr'} href=${href(`/channels/${code}/pair`)}>
        ${t(hasAccount(channel) ? 'account' : 'pair')}<//>`}`;
}

// Facts that the network does not provide are left out.
function Evidence({ of: channel }) {
  const time = useSecond();
  const seen = channel.evidence || {};
  const since = (at) => duration(Math.max(1000, Math.floor((time - Date.parse(at)) / 1000) * 1000));
  const facts = [
    ...(channel.evidence ? [['connected', seen.connected_at], ['heard', seen.heard_at]] : []),
    ['confirmed', latest(seen.confirmed_at, channel.last_confirmed_at)], ['received', latest(seen.received_at, channel.last_inbound_at)],
  ];
  return html`<dl class="evidence" aria-label=${t('evidence')}>
    ${facts.map(([name, at]) => html`<div key=${name} data-t=${`evidence-${name}`}><dt>${t(name)}</dt>
      <dd title=${at ? full(at) : undefined}>${at ? name === 'connected' ? t('openFor', { time: since(at) })
        : core('ago', { time: since(at) }) : t('never')}</dd></div>`)}
    <div><dt>${t('waiting')}</dt><dd>${num(channel.waiting)}</dd></div>
    ${channel.today && [['firstToday', 'first_contacts'], ['messagesToday', 'messages']].map(([name, key]) => {
      const n = num(channel.today[key]), cap = channel.today[`${key}_cap`];
      return html`<div key=${name} data-t=${name}><dt>${t(name)}</dt><dd>${cap === null ? n : t('ofCap', { n, cap: num(cap) })}</dd></div>`;
    })}
    <div><dt>${t('day')}</dt><dd>${num(channel.sent_24h)} / <span class=${channel.failed_24h ? 'some-failed' : ''}>
      ${num(channel.failed_24h)}</span></dd></div>
  </dl>`;
}

const latest = (...times) => times.filter(Boolean).sort().at(-1);

// A channel's status over time: a bar to see it at a glance, and the list to read it.

const periods = ['1', '7', '30'];
const first = 50; // entries that are listed unless all are wanted

export function History({ channel }) {
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

// From the sandbox to WhatsApp: what that changes, what it does not, and who may be written to.

export function GoLive({ channel, changed }) {
  const { code } = channel;
  const real = (server.value?.networks || []).filter((n) => !n.simulated).sort((a, b) => b.pairing.length - a.pairing.length);
  const form = useForm({ who: 'only', allow: '', network: real[0]?.name }, async (values) => {
    requireNumbers(values, 'allow');
    await api.post(`/manage/channels/${code}/go-live`, wanted(values));
    await changed();
    go(`/channels/${code}/pair`, { checked: paired ? null : 1 });
    if (paired) toast(t('liveNow'), { kind: 'good' });
  });
  const name = html`<code>${code}</code>`;
  const network = networkBy(form.values.network);
  const paired = !network?.credentials.length;
  return html`<${Dialog} wide open title=${t('live', { code, title: networkTitle(network) })} onClose=${() => setQuery({ golive: null })}>
    <div class="grid2">
      <section><h3>${t('changes')}</h3><ul class="dots">${[1, paired ? 2 : 'account', 3, 4].map((n) => html`<li key=${n}>
        ${t(`change.${n}`)}</li>`)}
        </ul></section>
      <section><h3>${t('stays')}</h3><ul class="dots">${[1, 2, 3].map((n) => html`<li key=${n}>${t(`stay.${n}`, { code: name })}</li>`)}
        </ul></section>
    </div>
    <${Form} form=${form}>
      ${real.length > 1 && html`<${Field} form=${form} name="network" type="radio" label=${t('network')}
        options=${real.map((n) => [n.name, networkTitle(n)])} />`}
      <${AccountFields} key=${form.values.network} form=${form} network=${network} isNew />
      <${WhoMay} form=${form} name="allow" autofocus />
      <div class="row"><${Submit} need="operator" form=${form}>${t('goLive')}<//>
        <${AsCode} request=${{ method: 'POST', path: `/api/manage/channels/${code}/go-live`, body: wanted(form.values, true) }} /></div>
    <//>
  <//>`;
}

const wanted = ({ who, allow, network, ...values }, shown) => ({
  ...(who === 'all' ? { everybody: true } : { allow: numbers(allow) }),
  ...(network && { network }), ...toAccount(values, networkBy(network), shown) });
