// Figures over the last hour, day, week or month: of all channels, of one, or of a webhook. One request for all charts.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { now } from '../state.js';
import { texts, num, percent, duration } from '../i18n.js';
import { Card, Failed, Loading } from './card.js';
import { Plot } from './chart.js';

const t = texts('trends');

const spans = ['1h', '24h', '7d', '30d'];
const every = { '1h': 10_000, '24h': 60_000, '7d': 300_000, '30d': 300_000 }; // how often they are loaded again

/** span and onSpan: where the chosen span is kept; without them here. webhook: only what is of this webhook. */
export function Trends({ channel, webhook, span: given, onSpan }) {
  const [own, setOwn] = useState('24h');
  const span = spans.includes(given) ? given : own;
  const load = useLoad(() => api.get('/manage/stats', { query: { span, channel: channel || undefined, webhook } }),
    [span, channel, webhook, now.value - (now.value % every[span])]);
  const data = load.data?.data;
  const pick = (one) => () => { setOwn(one); onSpan?.(one); };
  return html`<section class="trends">
    <div class="spread"><h2>${t(webhook ? 'webhookTitle' : 'title')}</h2>
      <div class="chips" role="group" aria-label=${t('span')}>
        ${spans.map((one) => html`<button key=${one} type="button" class="chip" aria-pressed=${String(one === span)} onClick=${pick(one)}>
          ${t(`span.${one}`)}</button>`)}</div></div>
    ${load.error && !data ? html`<${Failed} load=${load} />`
      : html`<div class=${webhook ? 'stack' : 'trend-grid'}>
        ${charts(data, webhook).map((chart) => html`<${Chart} key=${chart.id} chart=${chart} data=${data} plain=${webhook} />`)}</div>`}
  </section>`;
}

function Chart({ chart, data, plain }) {
  const label = t(`chart.${chart.id}`);
  const inner = data ? html`<${Plot} label=${label} rows=${data.points} step=${data.step_seconds * 1000} ...${chart} />`
    : html`<div class="chart-wait"><${Loading} rows=${4} /></div>`;
  return plain ? html`<div><h3>${label}</h3>${inner}</div>` : html`<${Card} title=${label}>${inner}<//>`;
}

const tones = ['failed', 'warn', 'received', 'read', 'delivered', 'sent']; // of the reasons, the most frequent first

function charts(data, webhook) {
  const total = data?.total;
  const ms = (id, key, quantile, tone) => ({ id, label: t(`time.${id}`), tone, value: (row) => row[key]?.[quantile] ?? null });
  const took = (quantile) => ({ id: quantile, label: quantile, tone: quantile === 'p50' ? 'read' : 'received',
    value: (row) => row.webhooks.took_ms?.[quantile] ?? null });
  const hooks = [
    { id: 'webhooks', totals: total &&
      { delivered: `${num(total.webhooks.delivered)} (${percent(total.webhooks.delivered,
        total.webhooks.delivered + total.webhooks.failed_attempts)})`, failedAttempts: total.webhooks.failed_attempts }, format: orText,
      series: [{ id: 'delivered', label: t('attempts.delivered'), tone: 'sent', value: (row) => row.webhooks.delivered },
        { id: 'failedAttempts', label: t('attempts.failed'), tone: 'failed', value: (row) => row.webhooks.failed_attempts }] },
    { id: 'took', kind: 'lines', format: duration, totals: total?.webhooks.took_ms || {}, series: [took('p50'), took('p95')] },
  ];
  if (webhook) return hooks;
  const reasons = Object.entries(total?.failed_by || {}).sort((a, b) => b[1] - a[1]).map(([reason]) => reason);
  return [
    { id: 'messages', series: [
      ...['sent', 'delivered', 'read'].map((id) => ({ id, label: t(`count.${id}`), tone: id, nested: true })),
      { id: 'failed', label: t('count.failed'), tone: 'failed' },
        { id: 'received', label: t('count.received'), tone: 'received', stack: 1 },
    ] },
    { id: 'times', kind: 'lines', format: duration, totals: total && { toSent50: total.to_sent_ms?.p50, toSent95: total.to_sent_ms?.p95,
      toDelivered50: total.to_delivered_ms?.p50, toDelivered95: total.to_delivered_ms?.p95 },
      series: [ms('toSent50', 'to_sent_ms', 'p50', 'sent'), ms('toSent95', 'to_sent_ms', 'p95', 'delivered'),
        ms('toDelivered50', 'to_delivered_ms', 'p50', 'read'), ms('toDelivered95', 'to_delivered_ms', 'p95', 'received')] },
    { id: 'failures', empty: t('noneFailed'),
      series: reasons.map((reason, i) =>
        ({ id: reason, label: t.has(`reason.${reason}`) ? t(`reason.${reason}`) : reason, tone: tones[Math.min(i, tones.length - 1)],
        value: (row) => row.failed_by[reason] || 0 })) },
    { id: 'codes', series: ['requested', 'delivered', 'approved'].map((id, i) =>
      ({ id, label: t(`otp.${id}`), tone: ['sent', 'delivered', 'read'][i], nested: true, value: (row) => row.otp[id] })) },
    ...hooks,
  ];
}

const orText = (n) => (typeof n === 'string' ? n : num(n));
