// All channels, page by page: which need attention, and bulk actions.
import { html, useEffect, useMemo, useRef, useSignal, useState } from '../view.js';
import { useLoad, api } from '../api.js';
import { href, query, setQuery, go } from '../router.js';
import { addChannels, networkBy, reloadChannels, selected, now, server, hasRole } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, num, clock, day, full, isToday } from '../i18n.js';
import { Head, Empty, Loading } from '../parts/card.js';
import { useSelection } from '../parts/selection.js';
import { Table } from '../parts/table.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Icon } from '../parts/icon.js';
import { Badge } from '../parts/status.js';
import { ChannelStatus, Reason, channelTone, reasonText, urgency } from '../parts/channel_status.js';
import { Who, mask } from '../parts/who.js';
import { Dialog } from '../parts/dialog.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { Labels, toLabels } from '../parts/labels.js';
import { LabelsField } from '../parts/labels_field.js';
import { AccountFields, networkTitle, toAccount } from '../parts/account.js';
import { Bulk, Result } from './channels_bulk.js';

const t = texts('channels');
const core = texts('core');

const every = 30_000; // how often the counts are asked for again; a new status asks for them too
const everyDeletion = 5000; // how often the progress of deletions is asked for
const perPage = 50;

export default function Page() {
  const { status = '', q = '', label = '', sort = '', cursor = '' } = query.value;
  const asked = { search: q, status, label, sort: sort || 'attention' };
  const about = JSON.stringify([asked, cursor, selected.value]);
  const load = useChannels(asked, cursor, about);
  const { data: all, meta } = load.data || {};
  const box = useRef();
  const [rows, moved, arrange] = useStableOrder(all, load.data?.about, box);
  const picked = useSignal(new Set());
  const selection = useSelection(hasRole('operator') ? picked : undefined);
  const results = useSignal(new Map());
  // What is not seen any more must not be stopped by mistake. Another page of the same list keeps what was picked.
  useEffect(() => { if (picked.value.size) picked.value = new Set(); }, [status, q, label, selected.value]);
  const networks = server.value?.networks || [];
  const make = (network) => () => setQuery({ new: network?.name });
  const makeFirst = make(networks[0]); // a simulated one, if there is one
  useKeys([['n', t('new'), makeFirst, 'operator']]);

  const filtered = status || q || label || selected.value;
  const alone = Boolean(selected.value);
  const clear = () => setQuery({ status: null, q: null, label: null, channel: null, cursor: null });
  const empty = filtered || cursor ? html`<${Empty} title=${t('noMatch')}><${Button} onClick=${clear}>${t('clear')}<//><//>`
    : html`<${Empty} icon="channels" title=${t('none')} text=${t('noneText')}>
        ${networks.map((network) => html`<${Button} key=${network.name} need="operator" onClick=${make(network)}
          kind=${network.simulated ? 'primary' : undefined}>${t(toMake(network), { title: networkTitle(network) })}<//>`)}<//>`;
  const desc = sort.startsWith('-');
  const order = { id: sort.replace('-', '') || 'attention', desc };
  const onSort = (next) => setQuery({ sort: next && next.id !== 'attention' ? `${next.desc ? '-' : ''}${next.id}` : null, cursor: null });
  const request = { path: `/api/manage/channels?${new URLSearchParams(Object.entries({ ...asked, limit: perPage, cursor })
    .filter(([, value]) => value))}` };
  return html`
    <${Head} title=${core('page.channels')} lead=${meta ? lead(meta) : '\u00a0'} actions=${html`
      <${AsCode} request=${request} /><${Button} need="operator" kind="primary" icon="plus" onClick=${makeFirst}>${t('new')}<//>`} />
    ${meta && !alone && (meta.total > 0 || filtered) &&
      html`<${Filters} meta=${meta} status=${status} q=${q} label=${label} moved=${moved} arrange=${arrange} />`}
    <${Bulk} picked=${picked} results=${results} asked=${asked} total=${meta?.total} onDone=${load.reload} />
    ${!meta && !load.error && html`<${Loading} rows=${8} />`}
    <div class="channel-table" ref=${box}>
      ${(meta || load.error) && html`<${Table} label=${core('page.channels')} load=${load} rows=${rows} rowKey=${(row) => row.code}
        rowHref=${(row) => href(`/channels/${row.code}`)}
      selection=${selection} sort=${order} onSort=${onSort}
        columns=${columns(results, rows?.some((row) => row.labels.length), Object.values(meta?.networks || {}).filter(Boolean).length > 1)}
        empty=${empty} />`}</div>
    <${Pages} rows=${rows} meta=${meta} cursor=${cursor} about=${JSON.stringify(asked)} />
    <${Deletions} of=${all} />
    <${NewChannel} />`;
}

const toMake = (network) => (network.simulated ? 'newSandbox' : network.pairing.length ? 'newPaired' : 'newOther');

// Deleted channels whose messages are still being removed. A change of the list may be a deletion.
function Deletions({ of }) {
  const { data } = useLoad(async () => (await api.get('/manage/deletions')).data, [of, now.value - (now.value % everyDeletion)]);
  const running = data?.filter((one) => one.state === 'running') || [];
  if (!running.length) return null;
  return html`<section class="deletions muted" aria-label=${t('deletions')}>${running.map((one) => html`<p key=${one.id} role="status">
    ${one.messages_left === null ? t('deleting', { code: one.code })
      : t('deletingLeft', { code: one.code, n: one.messages_left })} ${one.problem}</p>`)}</section>`;
}

// The picked channel alone, as a list.
async function only(code) {
  const meta = { total: 0, statuses: {}, labels: [], next_cursor: null };
  try {
    const { data } = await api.get(`/manage/channels/${encodeURIComponent(code)}`);
    return { data: [data], meta: { ...meta, total: 1, statuses: { [data.status]: 1 } } };
  } catch (error) {
    if (error.status !== 404) throw error;
    return { data: [], meta };
  }
}

// One page of the list.
const useChannels = (asked, cursor, about) => useLoad(async () => {
  const { data, meta } = selected.peek() ? await only(selected.peek())
    : await api.get('/manage/channels', { query: { ...asked, limit: perPage, cursor } });
  addChannels(data);
  return { data, meta, about };
}, [about, now.value - (now.value % every)], { on: ['channel.status'] });

const needsAttention = (status) => channelTone[status] === 'bad' || status === 'SCAN_QR_CODE';

function lead({ statuses }) {
  const all = Object.values(statuses).reduce((sum, n) => sum + n, 0);
  const n = Object.entries(statuses).reduce((sum, [status, count]) => sum + (needsAttention(status) ? count : 0), 0);
  if (n || !all) return n ? t('attention', { n }) : '';
  const working = statuses.WORKING || 0;
  return working === all ? t('allClear', { n: all }) : t('someWork', { n: working, all: num(all) });
}

/**
 * Rows in the order of the server. A later response does not move a row while the reader uses the table. Returns
 * [rows, whether the order is outdated, a function that shows the new order].
 */
function useStableOrder(rows, about, box) {
  const [, redraw] = useState(0);
  const order = useRef({});
  const codes = rows?.map((row) => row.code);
  const same = order.current.codes?.join() === codes?.join();
  const used = box.current?.matches(':hover,:focus-within');
  if (codes && !same && (order.current.about !== about || !used)) order.current = { about, codes };
  const moved = Boolean(codes) && order.current.codes?.join() !== codes.join();
  const by = new Map(rows?.map((row) => [row.code, row]));
  const list = useMemo(() => rows &&
    (moved ? [...order.current.codes.map((code) => by.get(code)).filter(Boolean),
      ...rows.filter((row) => !order.current.codes.includes(row.code))] : rows), [rows, moved]);
  return [list, moved, () => { order.current = {}; redraw((n) => n + 1); }];
}

/** The pages of the list. Where the reader came from is known for as long as the filter stays. */
function Pages({ rows, meta, cursor, about }) {
  const trail = useRef({});
  if (trail.current.about !== about) trail.current = { about, before: [] };
  if (!meta || (!meta.next_cursor && !cursor)) return null;
  const top = () => scrollTo(0, 0);
  const next = () => { trail.current.before.push(cursor); setQuery({ cursor: meta.next_cursor }); top(); };
  const back = () => { setQuery({ cursor: trail.current.before.pop() || null }); top(); };
  return html`<nav class="row pages" aria-label=${t('pages')}>
    <span class="muted">${t('shown', { n: num(rows.length), all: num(meta.total) })}</span>
    <${Button} icon="left" disabled=${!cursor} onClick=${back}>${t('previousPage')}<//>
    <${Button} disabled=${!meta.next_cursor} onClick=${next}>${t('nextPage')}<//></nav>`;
}

function Filters({ meta, status, q, label, moved, arrange }) {
  const counts = meta.statuses;
  const names = Object.keys(urgency).filter((name) => counts[name] || name === status);
  const chip = (name, words, n) =>
    html`<button key=${name} type="button" class="chip" aria-pressed=${String(status === name)}
      onClick=${() => setQuery({ status: status === name ? null : name, cursor: null })}>
    ${words} <span class="count">${num(n)}</span></button>`;
  const labels = meta.labels.some((one) => one.label === label) || !label ? meta.labels : [{ label, channels: 0 }, ...meta.labels];
  return html`<div class="spread channel-filters">
    <div class="chips" role="group" aria-label=${t('byStatus')}>${chip('', t('all'), Object.values(counts).reduce((sum, n) => sum + n, 0))}
      ${names.map((name) => chip(name, core(`channel.${name}`), counts[name] || 0))}</div>
    <div class="row">
      ${moved && html`<${Button} small kind="quiet" icon="up" onClick=${arrange}>${t('moved')}<//>`}
      ${labels.length > 0 && html`<select aria-label=${t('byLabel')} value=${label}
        onChange=${(event) => setQuery({ label: event.target.value, cursor: null })}>
        <option value="">${t('anyLabel')}</option>
          ${labels.map((one) => html`<option key=${one.label} value=${one.label} selected=${one.label === label}>
            ${one.label} (${num(one.channels)})</option>`)}</select>`}
      <${Search} q=${q} />
    </div>
  </div>`;
}

// The server searches when the reader stops typing for a moment.
function Search({ q }) {
  const [text, setText] = useState(q);
  const timer = useRef(0);
  const sent = useRef(q);
  useEffect(() => { if (q !== sent.current) { sent.current = q; setText(q); } }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const find = (value) => { clearTimeout(timer.current); sent.current = value; setQuery({ q: value, cursor: null }, { replace: true }); };
  const type = (event) => {
    const { value } = event.target;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => find(value), 200);
  };
  return html`<label class="find"><${Icon} name="search" size=${16} /><input type="search" data-search aria-label=${t('search')}
    placeholder=${t('search')} value=${text} maxlength="100"
    onInput=${type} onKeyDown=${(event) => event.key === 'Enter' && find(event.target.value)} /></label>`;
}

const columns = (results, labelled, mixed) => [
  { id: 'attention', label: t('status'), card: 'status', sort: true,
    cell: (row) => html`<${ChannelStatus} status=${row.status} reason=${row.reason} /><span class="sr"> ${row.code}</span>
      ${row.restricted_until && html` <${Badge} tone="bad">${t('restricted')}<//>`}` },
  ...(results.value.size ? [{ id: 'result', label: t('result'), card: 'meta', class: 'channel-result',
    cell: (row) => html`<${Result} of=${results.value.get(row.code)} />` }] : []),
  { id: 'code', label: t('code'), card: 'title', sort: true, class: 'channel-code',
    cell: (row) => html`<span class="row nowrap"><span class="mono clip" title=${row.code}>${row.code}</span>
      <${Copy} text=${row.code} what=${row.code} /></span>` },
  { id: 'name', label: t('name'), card: 'text', sort: true, class: 'channel-name',
    cell: (row) => html`<bdi class="clip">${mask(row.name)}</bdi>
      ${row.reason && row.status !== 'WORKING' && html`<small class="why clip" title=${reasonText(row.reason)}><${Reason}
        text=${row.reason} /></small>`}` },
  ...(labelled ? [{ id: 'labels', label: t('labels'), card: 'meta', class: 'channel-labels',
    cell: (row) => html`<${Labels} of=${row.labels} most=${2} />` }] : []),
  ...(mixed ? [{ id: 'network', label: t('network'), class: 'channel-network', cell: (row) => html`<${Network} of=${row} />` }] : []),
  { id: 'number', label: t('number'), card: 'meta', class: 'channel-number', sort: true,
    cell: (row) => (row.number ? html`<${Who} number=${row.number} />` : html`<span class="hide-small">–</span>`) },
  { id: 'since', label: t('since'), card: 'when', sort: true, cell: (row) => html`<${Short} at=${row.since} />` },
  { id: 'last_inbound_at', label: t('inbound'), class: 'channel-inbound', sort: true,
    cell: (row) => html`<${Short} at=${row.last_inbound_at} />` },
  { id: 'last_confirmed_at', label: t('confirmed'), class: 'channel-confirmed', sort: true,
    cell: (row) => html`<${Short} at=${row.last_confirmed_at} />` },
  { id: 'waiting', label: t('waiting'), align: 'end', class: 'channel-waiting', sort: true, cell: (row) => num(row.waiting || 0) },
  { id: 'failed_24h', label: t('day'), align: 'end', class: 'channel-day', sort: true,
    cell: (row) => html`${num(row.sent_24h)} / <span class=${row.failed_24h ? 'some-failed' : ''}>${num(row.failed_24h)}</span>` },
];

// To the minute or the day, so that ten columns fit; all of it on hover.
const Short = ({ at }) => (at ? html`<time datetime=${at} title=${full(at)}>${isToday(at) ? clock(at).slice(0, 5) : day(at)}</time>` : '–');

// Only shown where there are both. The one that reaches real phones is marked.
const Network = ({ of: row }) => (row.simulated ? html`<span class="muted">${row.network}</span>`
  : html`<${Badge} tone="good">${row.network}<//>`);

// A new channel on one of the networks; where that needs it, it is paired next.

/** The dialog that ?new= opens. */
export function NewChannel() {
  const network = query.value.new;
  return html`<${Dialog} open=${Boolean(network)} title=${t('new')} onClose=${() => setQuery({ new: null })}>
    <${NewForm} network=${network} /><//>`;
}

function NewForm({ network }) {
  const form = useForm({ network, code: '', name: '', labels: '' }, async (values) => {
    const { data } = await api.post('/manage/channels', wanted(values));
    await reloadChannels();
    const { pairing, credentials } = networkBy(data.network);
    go(`/channels/${data.code}${pairing.length || credentials.length ? '/pair' : ''}`, { checked: credentials.length ? 1 : null });
  });
  const kinds = (n) => (n.simulated ? 'sandbox' : n.pairing.length ? 'paired' : 'account');
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="network" label=${t('kind')} type="radio"
      options=${(server.value?.networks || []).map((n) => [n.name, t(kinds(n), { title: networkTitle(n) })])} />
    <${Field} form=${form} name="code" label=${t('code')} hint=${t('codeHint')} required autofocus autocomplete="off" autocapitalize="off"
      spellcheck=${false} maxlength="32" class="mono" />
    <${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} autocomplete="off" maxlength="60" />
    <${LabelsField} form=${form} />
    <${AccountFields} key=${form.values.network} form=${form} network=${networkBy(form.values.network)} isNew />
    <div class="row"><${Submit} need="operator" form=${form}>${t('create')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/manage/channels', body: wanted(form.values, true) }} /></div>
  <//>`;
}

const wanted = ({ network, code, name, labels, ...values }, shown) =>
  ({ code, network, ...(name && { name }), ...(toLabels(labels).length && { labels: toLabels(labels) }),
    ...toAccount(values, networkBy(network), shown) });
