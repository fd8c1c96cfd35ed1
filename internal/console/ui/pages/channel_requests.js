// The request log of a channel: newest first, in pages, with filters.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { now } from '../state.js';
import { texts, duration } from '../i18n.js';
import { Empty, Facts } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { SearchWord } from '../parts/search.js';
import { Button, Copy } from '../parts/button.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { Badge } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { mask } from '../parts/who.js';

const t = texts('requests');
const core = texts('core');

const perPage = 50;
const classes = { '': 'any', '2xx': 'ok', '4xx': 'refused', '5xx': 'failed' };
const fields = { path: 'path', code: 'errorCode', request_id: 'requestId', idempotency_key: 'key' };

export function Requests({ channel }) {
  const filter = Object.fromEntries(['status', ...Object.keys(fields)].filter((name) => query.value[name])
    .map((name) => [name, query.value[name]]));
  const about = JSON.stringify([channel.code, filter]);
  const [pages, setPages] = useState({ about, n: 1 });
  const n = pages.about === about ? pages.n : 1;
  const path = `/channels/${channel.code}/requests`;
  const load = useLoad(() => api.list(`/manage${path}`, { ...filter, limit: perPage }, n), [about, n, now.value]);
  const rows = load.data?.rows;
  const drawer = useDrawer(rows, (row) => row.id);
  const { status = '' } = filter;
  return html`
    <div class="row access-filters">
      <select class="pick-one" aria-label=${t('status')} value=${status}
        onChange=${(event) => setQuery({ status: event.target.value || null })}>
        ${Object.entries(classes).map(([value, word]) => html`<option key=${value} value=${value} selected=${value === status}>${t(word)}
          </option>`)}</select>
      ${Object.entries(fields).map(([name, word]) =>
        html`<${SearchWord} key=${name} name=${name} label=${t(word)} data-search=${name === 'path' || undefined} />`)}
    </div>
    <${Table} label=${t('title')} load=${load} rows=${rows} rowKey=${(row) => row.id} drawer=${drawer} columns=${columns}
      rowHref=${(row) => href(path, { ...filter, ...drawer.at(row.id) })}
      empty=${Object.keys(filter).length ? html`<${Empty} icon="filter" title=${t('noMatch')}><${Button} href=${href(path)}>
        ${core('clearFilter')}<//><//>` : html`<${Empty} icon="api" title=${t('none')} text=${t('noneText')} />`} />
    ${load.data?.total > rows?.length && html`<div class="row end"><span class="muted">
      ${t('shown', { n: rows.length, all: load.data.total })}</span>
      <${Button} busy=${load.loading && rows.length <= (n - 1) * perPage} onClick=${() => setPages({ about, n: n + 1 })}>
        ${t('older')}<//></div>`}
    <${Drawer} drawer=${drawer} title=${t('request')}>${drawer.row && html`<${Detail} row=${drawer.row} />`}<//>`;
}

const tone = (status) => (status < 400 ? 'good' : status < 500 ? 'warn' : 'bad');
const took = (row) => duration(row.took_ms);

const columns = [
  { id: 'time', get label() { return t('time'); }, cell: (row) => html`<${Time} at=${row.at} />`, card: 'when' },
  { id: 'status', get label() { return t('status'); }, cell: (row) => html`<${Badge} tone=${tone(row.status)}>${row.status}<//>`,
    card: 'status' },
  { id: 'request', get label() { return t('request'); }, cell: (row) => html`<bdi class="clip mono" title=${mask(row.path)}>
    ${row.method} ${mask(row.path)}</bdi>`, card: 'title' },
  { id: 'code', get label() { return t('errorCode'); }, cell: (row) => html`<span class="mono">${row.code || ''}</span>`, card: 'text' },
  { id: 'took', get label() { return t('took'); }, align: 'end', cell: took, card: 'meta' },
  { id: 'id', get label() { return t('requestId'); }, cell: (row) => html`<bdi class="clip mono muted" title=${row.request_id}>
    ${row.request_id}</bdi>`, wide: true },
];

const copied = (text, what) => text && html`<span class="row"><code>${text}</code><${Copy} text=${text} what=${what} /></span>`;

const Detail = ({ row }) => html`<${Facts} rows=${[
  [t('time'), html`<${Time} at=${row.at} ago />`],
  [t('request'), html`<code>${row.method} <bdi>${mask(row.path)}</bdi></code>`],
  [t('status'), html`<${Badge} tone=${tone(row.status)}>${row.status}<//>`],
  [t('errorCode'), row.code && html`<code>${row.code}</code>`],
  [t('took'), took(row)],
  [t('requestId'), copied(row.request_id, t('requestId'))],
  [t('key'), copied(row.idempotency_key, t('key'))],
  [t('token'), copied(row.token, t('token'))],
]} />`;
