// Webhooks and their deliveries.
import { html, useMemo } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { selected, now } from '../state.js';
import { tick } from '../checklist.js';
import { useKeys } from '../keys.js';
import { texts, percent, num, duration, full } from '../i18n.js';
import { Head, Card, Empty, Loading } from '../parts/card.js';
import { Tabs } from '../parts/tabs.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { Result } from '../parts/delivery.js';
import { Dialog } from '../parts/dialog.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { Icon } from '../parts/icon.js';
import { lazy } from '../parts/lazy.js';
import { Time } from '../parts/time.js';
import NotFound from './notfound.js';

const Deliveries = lazy(() => import('./webhooks_deliveries.js').then((module) => module.Deliveries), 6);
const Endpoint = lazy(() => import('./webhooks_endpoint.js').then((module) => module.Endpoint), 6);
const EndpointForm = lazy(() => import('./webhooks_form.js').then((module) => module.EndpointForm), 5);

const t = texts('webhooks');
const core = texts('core');
const ChannelHead = lazy(() => import('../parts/channel_head.js').then((module) => module.ChannelHead), 2);

const every = 30_000; // how often the figures of 24 hours are asked for again
const counted = 20; // so many webhooks have figures in the list; each costs a few questions
const lateAfter = 300_000; // milliseconds that an event may wait

export default function Page({ route }) {
  const { state, open } = query.value;
  const onDeliveries = route.params.id === 'deliveries' || state || open;
  const load = useLoad(() => api.get('/manage/webhooks'), [now.value - (now.value % every)]);
  const all = load.data?.data;
  const rows = useMemo(() => all?.filter((row) => !selected.value || !row.channel || row.channel === selected.value),
    [all, selected.value]);
  const figures = useFigures(onDeliveries ? undefined : rows);
  useKeys([['n', t('add'), () => setQuery({ new: '1' }), 'operator']]);
  if (route.params.id && route.params.id !== 'deliveries') return html`<${NotFound} route=${route} />`;
  return html`
    ${selected.value && html`<${ChannelHead} current="webhooks" />`}
    <${Head} title=${core('page.webhooks')} lead=${rows ? lead(rows, figures) : '\u00a0'} actions=${html`
      <${AsCode} request=${{ path: `/api/manage/${onDeliveries ? 'deliveries' : 'webhooks'}` }} />
        <${Button} need="operator" kind="primary" icon="plus" ...${EndpointForm.near} onClick=${() => setQuery({ new: '1' })}>
          ${t('add')}<//>`} />
    <div ...${Deliveries.near}><${Tabs} label=${core('page.webhooks')} current=${onDeliveries ? 'deliveries' : 'endpoints'} tabs=${[
      { id: 'endpoints', label: t('endpoints'), href: href('/webhooks'), count: rows?.length },
      { id: 'deliveries', label: t('deliveries'), href: href('/webhooks/deliveries') },
    ]} /></div>
    ${onDeliveries ? html`<${Deliveries} webhooks=${all} />` : html`<${Endpoints} load=${load} rows=${rows} figures=${figures} />`}
    <${FormDialog} webhooks=${all} onDone=${load.reload} />`;
}

/** The dialog that ?new= and ?edit= open. */
function FormDialog({ webhooks, onDone }) {
  const { new: fresh, edit } = query.value;
  const close = () => setQuery({ new: null, edit: null });
  const webhook = webhooks?.find((one) => one.id === edit);
  if (!fresh && !edit) return null;
  return html`<${Dialog} open title=${t(edit ? 'edit' : 'add')} onClose=${close}>
    ${edit && !webhook ? html`<${Loading} />`
      : html`<${EndpointForm} key=${edit} webhook=${webhook} close=${close} onDone=${onDone} />`}<//>`;
}

function lead(all, figures) {
  if (!all.length) return t('none');
  const count = (state) => all.filter((row) => toState(row, figures?.get(row.id)) === state).length;
  const [failing, late, off] = ['failing', 'late', 'off'].map(count);
  return [failing > 0 && t('someFail', { n: failing }), late > 0 && t('someLate', { n: late }), off > 0 && t('someOff', { n: off })]
    .filter(Boolean).join(' ') || t('allWork', { n: all.length });
}

// What the list says of the last 24 hours and of what waits, by webhook.
function useFigures(rows) {
  return useLoad(async () => {
    if (!rows) return undefined;
    const ask = (webhook, more) => api.get('/manage/deliveries', { query: { webhook, limit: 1, ...more } });
    const found = await Promise.all(rows.slice(0, counted).map(async ({ id, failing_since: failing }) => {
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
}

// The order of the list depends on the figures: it is sorted again when they arrive.
function Endpoints({ load, rows: all, figures }) {
  const rows = useMemo(() => all?.map((row) => ({ ...row, figures: figures?.get(row.id) })), [all, figures]);
  const drawer = useDrawer(rows, (row) => row.id, 'webhook');
  return html`
    <div class="endpoints" ...${Endpoint.near}><${Table} label=${t('endpoints')} load=${load} rows=${rows} rowKey=${(row) => row.id}
      drawer=${drawer} rowHref=${(row) => href('/webhooks', drawer.at(row.id))} columns=${columns(figures)} sort=${{ id: 'state' }}
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

const none = (figures) => (figures ? html`<span class="hide-small">–</span>` : ''); // while they load nothing is said

/** For how long the oldest waits, in little room. */
function waits(at) {
  const ms = Math.max(1000, now.value - Date.parse(at));
  return core('ago', { time: duration(ms - (ms % (ms < 60_000 ? 1000 : 60_000))) });
}

// A card has no heads of columns.
const Named = ({ name }) => html`<span class="only-small muted">${name}: </span>`;

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
  { id: 'day', label: t('day'), align: 'end', class: 'day-cell', cell: (row) => { const f = figures?.get(row.id); return f?.all
    ? html`<${Named} name=${t('day')} /><span title=${`${num(f.good)} / ${num(f.all)}`}>${percent(f.good, f.all)}</span>`
    : none(figures); }, card: 'meta' },
  { id: 'waiting', label: t('waiting'), align: 'end', class: 'waiting-cell', cell: (row) => { const f = figures?.get(row.id);
    return f?.waiting ? html`<${Named} name=${t('waiting')} />${num(f.waiting)} <span class="muted wide" title=${full(f.oldest)}>
      · ${waits(f.oldest)}</span>` : none(figures); }, card: 'meta' },
  { id: 'last', label: t('last'), cell: (row) => { const last = figures?.get(row.id)?.last; return last ? html`<${Result} d=${last} />`
    : none(figures); }, card: 'text' },
  { id: 'made', label: t('created'), cell: (row) => html`<${Time} at=${row.created_at} />`, wide: true },
];
