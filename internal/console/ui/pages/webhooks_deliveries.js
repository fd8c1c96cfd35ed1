// Deliveries to webhooks and callbacks. Waiting ones can be retried now, finished ones replayed: one, some or all.
import { html, useState, useEffect, useSignal } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { selected, now, hasRole } from '../state.js';
import { texts, num } from '../i18n.js';
import { useSelection } from '../parts/selection.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { Empty, Failed, Loading } from '../parts/card.js';
import { confirm } from '../parts/dialog.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { useHold, NewRows } from '../parts/hold.js';
import { useHeldRows } from '../parts/held_rows.js';
import { Badge, EventType, eventName } from '../parts/status.js';
import { Time, Left } from '../parts/time.js';
import { Result } from '../parts/delivery.js';
import { isDue, toAttempts, useSoon } from '../parts/delivery_soon.js';
import { lazy } from '../parts/lazy.js';
import { toast } from '../parts/toast.js';
import { Export } from '../parts/export.js';

const t = texts('deliveries');
const Delivery = lazy(() => import('./webhooks_delivery.js').then((module) => module.Delivery), 6);

const perPage = 100;
const mostPages = 10;
const perStep = 250; // of a replay, so that its progress is seen
const states = ['all', 'failed', 'retrying', 'waiting', 'delivered'];
const spans = { '1h': 3600, '24h': 86_400, '7d': 604_800 };

const toSince = (span) => (spans[span] ? new Date(Date.now() - spans[span] * 1000).toISOString() : undefined);
const toKey = (row) => row.id;
const blank = { failed: 0, retrying: 0, waiting: 0 }; // chips that will have a count keep room for it

export function Deliveries({ webhooks }) {
  const { state = 'all', webhook, since } = query.value;
  const which = { webhook, channel: selected.value || undefined };
  const about = JSON.stringify([which, state, since]);
  const [pages, setPages] = useState(1);
  const filter = () => ({ ...which, since: toSince(since) });
  const ask = (more) => api.get('/manage/deliveries', { query: { ...filter(), ...more } });
  const load = useLoad(async () => ({ about,
    ...await api.list('/manage/deliveries', { ...filter(), state: state === 'all' ? undefined : state, limit: perPage }, pages),
  }), [about, pages, now.value], { on: ['message.', 'otp.', 'poll.', 'channel.'] });
  const counts = useLoad(async () => {
    const [failed, retrying, waiting] = await Promise.all(['failed', 'retrying', 'waiting'].map((one) => ask({ state: one, limit: 1 })));
    const oldest = failed.meta.total ? (await ask({ state: 'failed', limit: 1, order: 'oldest' })).data[0] : null;
    return { failed: failed.meta.total, retrying: retrying.meta.total, waiting: waiting.meta.total, oldest };
  }, [about, now.value], { on: ['message.', 'otp.'] });
  const hold = useHold();
  const [rows, fresh, show] = useHeldRows(load.data?.rows, toKey, hold.held, load.data?.about);
  const reload = () => Promise.all([load.reload(), counts.reload()]);
  const lookAgain = useSoon(rows?.some(isDue), load.data, reload);
  const drawer = useDrawer(rows, toKey);
  const picked = useSignal(new Set());
  const selection = useSelection(hasRole('operator') ? picked : undefined);
  useEffect(() => { if (picked.value.size) picked.value = new Set(); }, [about]); // what is not seen must not be resent
  const done = () => { lookAgain(); return reload().then(show); };
  const at = (more) => href('/webhooks/deliveries', { webhook, since, state: state === 'all' ? undefined : state, ...more });
  const count = counts.data || {};
  // The bars above the list come first: it must not move when they do.
  const ready = counts.error || load.error || (counts.data && webhooks);
  const filtered = state !== 'all' || webhook || since;
  const failing = webhooks?.some((one) => one.failing_since && (!webhook || one.id === webhook));
  return html`
    <div class="spread delivery-filters">
      <nav class="chips" aria-label=${t('filter')}>
        ${states.map((one) => html`<a key=${one} class="chip" href=${at({ state: one })} aria-current=${one === state ? 'true' : undefined}>
          ${t(`show.${one}`)}${one in (counts.data || blank) && html` <span class="count">${num(count[one])}</span>`}</a>`)}</nav>
      <div class="row">
        ${webhooks?.length > 0 && html`<select class="pick-one" aria-label=${t('endpoint')} value=${webhook || ''}
          onChange=${(event) => setQuery({ webhook: event.target.value })}>
          <option value="">${t('everyEndpoint')}</option>
            ${webhooks.map((one) => html`<option key=${one.id} value=${one.id} selected=${one.id === webhook}>${one.url}
              </option>`)}</select>`}
        <select class="pick-one" aria-label=${t('since')} value=${since || ''}
          onChange=${(event) => setQuery({ since: event.target.value })}>
          <option value="">${t('anyTime')}</option>
            ${Object.keys(spans).map((one) => html`<option key=${one} value=${one} selected=${one === since}>${t(`span.${one}`)}
              </option>`)}</select>
        <${Export} what=${t('title')} path="/manage/deliveries/export"
          query=${{ ...which, since: toSince(since), state: state === 'all' ? undefined : state }} />
      </div>
    </div>
    <${Bulk} which=${which} since=${since} counts=${counts.data} onDone=${done} />
    <${Waiting} webhooks=${webhooks?.filter((one) => one.enabled && (!webhook || one.id === webhook))} counts=${counts.data}
      onDone=${done} />
    <${Picked} picked=${picked} rows=${rows} onDone=${done} />
    ${load.error && rows && html`<${Failed} load=${load} />`}
    ${!ready ? html`<${Loading} rows=${6} />` : html`<div ...${hold.box} ...${Delivery.near} class="deliveries">
      <${NewRows} n=${fresh} onShow=${show} />
      <${Table} label=${t('title')} load=${load} rows=${rows} rowKey=${toKey} drawer=${drawer} rowHref=${(row) => at(drawer.at(row.id))}
        columns=${columns}
        selection=${selection}
        empty=${filtered ? html`<${Empty} icon="filter" title=${t('noMatch')}
          text=${state === 'failed' ? t(failing ? 'stillTried' : 'goodNews') : ''}><${Button} href=${href('/webhooks/deliveries')}>
          ${t('clear')}<//><//>`
          : html`<${Empty} icon="webhooks" title=${t('none')} text=${t('noneText')}><${Button} href=${href('/phone')}>${t('toPhone')}<//>
            <//>`} /></div>`}
    ${ready && load.data?.total > rows?.length && pages < mostPages && html`<div class="row end"><span class="muted">
      ${t('shown', { n: rows.length, all: load.data.total })}</span>
      <${Button} busy=${load.loading && pages > 1 && rows.length <= (pages - 1) * perPage} onClick=${() => setPages(pages + 1)}>
      ${t('older')}<//></div>`}
    <${Drawer} drawer=${drawer} title=${drawer.row ? eventName(drawer.row.type) : t('delivery')}>
      ${drawer.id.startsWith('dlv_') && html`<${Delivery} key=${drawer.id} id=${drawer.id} onChange=${reload} />`}<//>`;
}

const columns = [
  { id: 'time', get label() { return t('time'); }, cell: (d) => html`<${Time} at=${d.created_at} />`, card: 'when' },
  { id: 'type', get label() { return t('event'); }, cell: (d) => html`<${EventType} type=${d.type} class="wide" />`, card: 'title' },
  { id: 'channel', get label() { return t('channel'); }, cell: (d) => html`<span class="clip">${d.channel}</span>`, wide: true,
    class: 'channel-cell' },
  { id: 'url', get label() { return t('endpoint'); }, cell: (d) => html`${!d.webhook && html`<${Badge} tone="accent">${t('callback')}<//> `}
    <bdi title=${d.url}>${d.url.replace(/^\w+:..|\?.*/g, '')}</bdi>`, card: 'text', class: 'url-cell' },
  { id: 'result', get label() { return t('result'); }, cell: (d) => html`<${Result} d=${d} />`, card: 'status' },
  { id: 'attempts', get label() { return t('attempts'); }, cell: (d) => html`<span class="mono-num">${d.attempts}/${toAttempts(d)}</span>`,
    align: 'end', wide: true },
  { id: 'next', get label() { return t('next'); },
    cell: (d) => (d.next_at ? html`<span class="mono-num" title=${d.next_at}><${Left} until=${d.next_at} /></span>`
      : d.state === 'waiting' ? t('inLine') : ''), align: 'end' },
];

/** "Replay 214 failed since 11:40": counted before it is done, in steps that are seen. */
function Bulk({ which, since, counts, onDone }) {
  const [run, setRun] = useState(null);
  const failed = counts?.failed;
  const replay = async () => {
    const body = { ...which, state: 'failed', since: toSince(since) };
    // What it would do is asked first: the count that is shown may be some seconds old.
    const { meta } = await api.get('/manage/deliveries', { query: { ...body, limit: 1 } });
    const all = meta.total;
    if (!await confirm({ title: t('replayAll', { n: all }), text: t('replayText', { n: all }), action: t('replay') })) return;
    const step = { done: 0, all, running: true };
    setRun({ ...step });
    try {
      for (let more = true, before; more;) {
        const { data } = await api.post('/manage/deliveries/replay', { ...body, limit: perStep, ended_before: before });
        before = data.ended_before;
        more = data.more;
        step.done += data.replayed;
        setRun({ ...step });
      }
    } finally {
      setRun({ ...step, running: false });
      await onDone();
    }
  };
  if (!failed && !run) return null;
  return html`<div class="bulk-bar" role="status">
    ${run ? html`<progress max=${Math.max(run.all, run.done, 1)} value=${run.done} aria-label=${t('progress')} /><span>
      ${t(run.running ? 'running' : 'finished', { n: run.done, all: run.all })}</span>
        ${!run.running && html`<${Button} small kind="quiet" onClick=${() => setRun(null)}>${t('close')}<//>`}`
      : html`<span class="grow">${t('someFailed', { n: failed })}</span>`}
    ${failed > 0 && !run?.running && html`<${Button} need="operator" small icon="refresh" onClick=${replay}>
      ${t('replaySince', { n: failed, time: html`<${Time} at=${counts.oldest?.created_at} />` })}<//>`}
  </div>`;
}

/** "12 wait for a retry": all of the shown webhooks are tried now. Deliveries of a webhook that is off wait until it is on. */
function Waiting({ webhooks, counts, onDone }) {
  if (!counts?.retrying || !webhooks?.length) return null;
  const retry = async () => {
    let n = 0;
    for (const { id } of webhooks) n += (await api.post(`/manage/webhooks/${id}/retry`)).data.waiting;
    toast(t('retriedAll', { n }), { kind: 'good' });
    await onDone();
  };
  return html`<div class="bulk-bar"><span class="grow">${t('someWait', { n: counts.waiting, tried: num(counts.retrying) })}</span>
    <${Button} need="operator" small icon="refresh" onClick=${retry}>${t('retryAll')}<//></div>`;
}

/** What can be done with the ticked rows: those that wait are retried, the others replayed. */
function Picked({ picked, rows, onDone }) {
  const mine = (rows || []).filter((row) => picked.value.has(row.id));
  if (!mine.length) return null;
  const waiting = mine.filter((row) => row.state === 'waiting');
  const finished = mine.filter((row) => row.state !== 'waiting');
  const close = () => { picked.value = new Set(); };
  const over = async (text) => { toast(text, { kind: 'good' }); close(); await onDone(); };
  const retry = async () => {
    for (const { id } of waiting) await api.post(`/manage/deliveries/${id}/retry`);
    await over(t('retriedAll', { n: waiting.length }));
  };
  const replay = async () => {
    const { data } = await api.post('/manage/deliveries/replay', { ids: finished.map(toKey) });
    await over(t('replayedAll', { n: data.replayed }));
  };
  return html`<div class="bulk" role="region" aria-label=${t('picked', { n: mine.length })} data-t="picked"><strong>
    ${t('picked', { n: mine.length })}</strong>
    <span class="row">
      ${waiting.length > 0 && html`<${Button} small icon="refresh" onClick=${retry}>${t('retrySome', { n: waiting.length })}<//>`}
      ${finished.length > 0 && html`<${Button} small icon="refresh" onClick=${replay}>${t('replaySome', { n: finished.length })}<//>`}
      <${Button} small kind="quiet" onClick=${close}>${t('deselect')}<//></span></div>`;
}
