// Webhooks and their deliveries.
import { html, lazy } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { selected, now } from '../state.js';
import { tick } from '../checklist.js';
import { useKeys } from '../keys.js';
import { texts, percent, num } from '../i18n.js';
import { Head, Tabs, Card, Empty } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { AsCode, Code } from '../parts/code.js';
import { useDrawer, Drawer } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Time } from '../parts/time.js';
import { Deliveries, Result } from './webhooks_deliveries.js';
import { ChannelHead } from '../parts/channel_tabs.js';
import NotFound from './notfound.js';

const Endpoint = lazy(() => import('./webhooks_endpoint.js').then((module) => module.Endpoint));
const EndpointForm = lazy(() => import('./webhooks_endpoint.js').then((module) => module.EndpointForm));

const t = texts('webhooks');
const core = texts('core');

const every = 30_000; // how often the figures of 24 hours are asked for again
const counted = 20; // so many webhooks have figures in the list; each costs a few questions
const lateAfter = 300_000; // milliseconds that an event may wait

export default function Page({ route }) {
  const { state, open } = query.value;
  const onDeliveries = route.params.id === 'deliveries' || state || open;
  const load = useLoad(() => api.get('/manage/webhooks'), [now.value - (now.value % every)]);
  const all = load.data?.data;
  const rows = all?.filter((row) => !selected.value || !row.channel || row.channel === selected.value);
  useKeys([['n', t('add'), () => setQuery({ new: '1' }), 'operator']]);
  if (route.params.id && route.params.id !== 'deliveries') return html`<${NotFound} route=${route} />`;
  return html`
    <${ChannelHead} current="webhooks" />
    <${Head} title=${core('page.webhooks')} lead=${rows ? lead(rows) : '\u00a0'} actions=${html`
      <${AsCode} request=${{ path: `/api/manage/${onDeliveries ? 'deliveries' : 'webhooks'}` }} />
        <${Button} need="operator" kind="primary" icon="plus" onClick=${() => setQuery({ new: '1' })}>${t('add')}<//>`} />
    <${Tabs} label=${core('page.webhooks')} current=${onDeliveries ? 'deliveries' : 'endpoints'} tabs=${[
      { id: 'endpoints', label: t('endpoints'), href: href('/webhooks'), count: rows?.length },
      { id: 'deliveries', label: t('deliveries'), href: href('/webhooks/deliveries') },
    ]} />
    ${onDeliveries ? html`<${Deliveries} webhooks=${all} />` : html`<${Endpoints} load=${load} rows=${rows} />`}
    <${EndpointForm} webhooks=${all} onDone=${load.reload} />`;
}

function lead(all) {
  const off = all.filter((row) => !row.enabled).length;
  const failing = all.filter((row) => row.enabled && row.failing_since).length;
  if (!all.length) return t('none');
  return failing || off ? [failing && t('someFail', { n: failing }), off && t('someOff', { n: off })].filter(Boolean).join(' ')
    : t('allWork', { n: all.length });
}

function Endpoints({ load, rows }) {
  const drawer = useDrawer(rows, (row) => row.id, 'webhook');
  const figures = useLoad(async () => {
    const ask = (webhook, more) => api.get('/manage/deliveries', { query: { webhook, limit: 1, ...more } });
    const found = await Promise.all((rows || []).slice(0, counted).map(async ({ id, failing_since: failing }) => {
      // Where an address fails, the oldest are tried again and again, and the newest wait behind them.
      const [last, waiting, { data: { total } }] = await Promise.all([ask(id, { limit: 20 }),
        ask(id, { state: 'waiting', limit: failing ? 20 : 1, order: 'oldest' }),
        api.get('/manage/stats', { query: { webhook: id, span: '24h' } })]);
      const { delivered: good, failed_attempts: failed } = total.webhooks;
      if (good) tick('webhook');
      const tried = [last, waiting].flatMap((page) => page.data).filter((one) => one.tried_at)
        .sort((a, b) => Date.parse(b.tried_at) - Date.parse(a.tried_at));
      return [id, { last: tried[0] || last.data[0], good, all: good + failed, waiting: waiting.meta.total,
        oldest: waiting.data[0]?.created_at }];
    }));
    return new Map(found);
  }, [rows?.map((row) => row.id + row.failures).join(), now.value - (now.value % every)], { on: ['message.'] }).data;
  return html`
    <div class="endpoints"><${Table} label=${t('endpoints')} load=${load} rows=${rows} rowKey=${(row) => row.id} drawer=${drawer}
      rowHref=${(row) => href('/webhooks', drawer.at(row.id))} columns=${columns(figures)} sort=${{ id: 'state' }}
      empty=${html`<${Empty} icon="webhooks" title=${t('none')} text=${t('noneText', { command: html`<code>parley listen</code>` })}>
        <${Button} need="operator" kind="primary" icon="plus" onClick=${() => setQuery({ new: '1' })}>${t('add')}<//><//>`} /></div>
    ${(rows || load.error) && html`<${Card} title=${t('local')}><p class="muted">${t('localText')}</p>
      <${Code} text="parley listen --forward-to localhost:3000/hook" what=${t('command')} /><//>`}
    <${Drawer} drawer=${drawer} title=${drawer.row ? new URL(drawer.row.url).host : t('endpoint')}>${drawer.row
      ? html`<${Endpoint} key=${drawer.id} webhook=${drawer.row} figures=${figures?.get(drawer.id)} onChange=${load.reload}
        onGone=${drawer.close} />` : rows && html`<p>${t('gone')}</p>`}<//>`;
}

const states = { on: 'good', late: 'warn', failing: 'warn', off: 'bad' };
const isLate = (f) => f?.waiting > 0 && now.value - Date.parse(f.oldest) > lateAfter;
export const toState = (row, f) => (!row.enabled ? 'off' : row.failing_since ? 'failing' : isLate(f) ? 'late' : 'on');

export function State({ row, figures }) {
  const state = toState(row, figures);
  return html`<span class="state ${states[state]}" title=${row.reason || undefined}>
    <${Icon} name=${state === 'on' ? 'good' : state === 'off' ? 'stop' : 'warn'} size=${16} />${t(`state.${state}`)}
    ${state === 'failing' && html`<span class="wide">${t('failingSince', { time: html`<${Time} at=${row.failing_since} />` })}
      </span>`}</span>`;
}

const none = (figures) => (figures ? '–' : ''); // while they load nothing is said

const columns = (figures) => [
  { id: 'state', label: t('state'), cell: (row) => html`<${State} row=${row} figures=${figures?.get(row.id)} />`,
    sort: (row) => ['off', 'failing', 'late', 'on'].indexOf(toState(row, figures?.get(row.id))), card: 'status' },
  { id: 'url', label: t('address'), cell: (row) => html`<bdi class="clip">${row.url}</bdi>`, sort: (row) => row.url, card: 'title',
    class: 'url-cell' },
  { id: 'channel', label: core('page.channel'),
    cell: (row) => (row.channel ? html`<span class="clip" title=${row.channel}>${row.channel}</span>`
      : html`<span class="muted hide-small">${t('every')}</span>`), card: 'meta', class: 'channel-cell' },
  { id: 'events', label: t('events'),
    cell: (row) => (row.events.length ? html`<span class="clip" title=${row.events.join(', ')}>
      ${row.events.length === 1 ? row.events[0] : t('someEvents', { n: row.events.length })}</span>`
      : html`<span class="muted">${t('every')}</span>`), wide: true },
  { id: 'day', label: t('day'), align: 'end', cell: (row) => { const f = figures?.get(row.id); return f?.all
    ? html`<span title=${`${num(f.good)} / ${num(f.all)}`}>${percent(f.good, f.all)}</span>` : none(figures); } },
  { id: 'waiting', label: t('waiting'), align: 'end', cell: (row) => { const f = figures?.get(row.id); return f?.waiting
    ? html`${num(f.waiting)} <span class="muted wide"><${Time} at=${f.oldest} ago /></span>` : none(figures); } },
  { id: 'last', label: t('last'), cell: (row) => { const last = figures?.get(row.id)?.last; return last ? html`<${Result} d=${last} />`
    : none(figures); }, card: 'text' },
  { id: 'made', label: t('created'), cell: (row) => html`<${Time} at=${row.created_at} />`, wide: true },
];
