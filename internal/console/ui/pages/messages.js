// What was sent and received, as it happens: found by a filter, and each with its timeline.
import { html, useEffect, useMemo } from '../view.js';
import { href, matched, query, setQuery } from '../router.js';
import { channelsLoaded, selected, formChannel, stored, toLine, masked, sandboxes } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, duration } from '../i18n.js';
import { Head, Failed } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button, IconButton, copyText } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { FilterInput, choices, leftOut, parse, toQuery } from '../parts/filter.js';
import { Dialog } from '../parts/dialog.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { useHold, NewRows } from '../parts/hold.js';
import { Icon } from '../parts/icon.js';
import { lazy } from '../parts/lazy.js';
import { Badge, Tick, whyFailed } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { Who, Body, mask, phone, number } from '../parts/who.js';
import { useFeed, toKey, isKey } from './messages_feed.js';
import { Export } from '../parts/export.js';
import { api } from '../api.js';

const t = texts('messages');
const core = texts('core');
const ChannelHead = lazy(() => import('../parts/channel_head.js').then((module) => module.ChannelHead), 2);
const kinds = texts('phone');
const Detail = lazy(() => import('./messages_detail.js').then((module) => module.Detail), 6);
const Nothing = lazy(() => import('./messages_none.js').then((module) => module.Nothing), 6);
const SendForm = lazy(() => import('./messages_send.js').then((module) => module.SendForm), 5);

const saved = stored('filters', ['status:failed', 'status:pending', 'direction:in']);

export default function Page() {
  const { q = '' } = query.value;
  const filter = useMemo(() => ({ ...(selected.value && { channel: selected.value }), ...parse(q) }), [q, selected.value]);
  const hold = useHold();
  const feed = useFeed(filter, hold.held);
  const { rows } = feed;
  const drawer = useDrawer(rows, toKey);
  useFullKey(drawer.id, rows);
  useKeys([
    ['Space', t(hold.paused ? 'resume' : 'pause'), hold.toggle],
    ['n', t('send'), () => setQuery({ send: '1' }), 'support'],
    ['y', t('copyID'), () => (isKey(drawer.id) ? copyText(drawer.id.replace(/^.*?\./, ''), t('id')) : copyFocused(rows))],
  ]);
  const asked = { ...toQuery(filter), id: undefined };
  const path = `/api/manage/messages?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`.replace(/\?$/, '');

  return html`
    ${selected.value && html`<${ChannelHead} current="messages" />`}
    <${Head} title=${core('page.messages')} lead=${lead(rows, q, feed.more)} actions=${html`
      <${Export} what=${core('page.messages')} path="/manage/messages/export" query=${asked} /><${AsCode} request=${{ path }} />
        <${Button} need="support" kind="primary" icon="send" ...${SendForm.near} onClick=${() => setQuery({ send: '1' })}>
          ${t('send')}<//>`} />
    <div class="row">
      <${FilterInput} value=${q} onChange=${find} values=${useValues(rows)} label=${t('filter')} placeholder=${t('filterHint')} />
      <${Save} q=${q} />
      <${IconButton} icon=${hold.paused ? 'play' : 'pause'} label=${t(hold.paused ? 'resume' : 'pause')} pressed=${hold.paused}
        onClick=${hold.toggle} />
    </div>
    <${Saved} q=${q} />
    ${feed.load.error && rows && html`<${Failed} load=${feed.load} />`}
    <div class="feed" ...${hold.box} ...${Detail.near} data-held=${hold.held ? 'true' : 'false'}>
      <${NewRows} n=${feed.fresh} onShow=${feed.show} />
      <${Table} label=${core('page.messages')} load=${feed.load} rows=${rows} rowKey=${toKey} columns=${columns} drawer=${drawer} pure
        flowing
        rowHref=${(row) => href('/messages', { q, ...drawer.at(toKey(row)) })} rowClass=${(row) => row.status === 'FAILED' && 'failed-row'}
          empty=${!feed.more && html`<${Nothing} q=${q} />`} />
    </div>
    ${feed.more && html`<div class="row end"><${Button} onClick=${feed.older}>${t(rows.length ? 'older' : 'searchOn')}<//></div>`}
    <${Drawer} drawer=${drawer} title=${t('message')}>
      ${isKey(drawer.id) && html`<${Detail} key=${drawer.id} id=${drawer.id} open=${drawer.open} />`}<//>
    <${SendDialog} onSent=${feed.refresh} />`;
}

// The reader may be on another page by now.
const find = (text) => { if (matched.value.name === 'messages') setQuery({ q: text }, { replace: true }); };

function copyFocused(rows) {
  const key = document.activeElement.closest('tr[data-key]')?.dataset.key;
  const row = key && rows.find((one) => toKey(one) === key);
  return row ? copyText(row.message_id, t('id')) : false;
}

// A link may name a message without its channel.
function useFullKey(id, rows) {
  useEffect(() => {
    // On the way to another page the address is that page's already.
    if (!id || isKey(id) || !rows || matched.value.name !== 'messages') return;
    const name = (code) => { if (query.peek().open === id && matched.peek().name === 'messages') setQuery({ open: `${code}.${id}` },
      { replace: true }); };
    const row = rows.find((one) => one.message_id === id || one.id === id);
    if (row) { name(row.channel); return; }
    api.get('/manage/find', { query: { id, channel: selected.peek() } })
      .then(({ data }) => name(data.find((one) => one.message)?.channel || selected.peek() || formChannel.peek()?.code || 'unknown'))
      .catch(() => {});
  }, [id, rows]);
}

// Always a line, so that the filter does not move while somebody types.
function lead(rows, q, more) {
  if (!rows) return '\u00a0';
  const out = leftOut(q);
  if (out.length) return t('leftOut', { words: html`<code>${out.join(' ')}</code>` });
  if (!q && !rows.length) return t('noneYet');
  const failed = rows.filter((row) => row.status === 'FAILED').length;
  if (q) return t(more ? 'foundMore' : 'found', { n: rows.length });
  return failed ? t('someFailed', { n: failed, all: rows.length }) : t('noneFailed', { n: rows.length });
}

// What the filter can be completed with.
function useValues(rows) {
  return useMemo(() => {
    const contacts = masked.value ? [] : [...new Set(rows?.map((row) => number(row.contact_id)).filter(Boolean))].slice(0, 50);
    return { status: choices.status, channel: sandboxes.value.map((channel) => channel.code), to: contacts, from: contacts,
      type: choices.type, direction: choices.direction, after: ['1h', '24h', '7d'], before: ['1h', '24h', '7d'], id: [] };
  }, [rows, sandboxes.value, masked.value]);
}

function Save({ q }) {
  if (!q) return null;
  const has = saved.value.includes(q);
  const toggle = () => { saved.value = has ? saved.value.filter((one) => one !== q) : [...saved.value, q]; };
  return html`<${IconButton} icon="star" label=${t(has ? 'removeFilter' : 'saveFilter')} pressed=${has} onClick=${toggle} />`;
}

const Saved = ({ q }) => html`<nav class="chips" aria-label=${t('saved')}>
  <a class="chip" href=${href('/messages')} aria-current=${q ? undefined : 'true'}>${t('all')}</a>
  ${saved.value.map((one) => html`<a key=${one} class="chip" title=${one} href=${href('/messages', { q: one })}
    aria-current=${q === one ? 'true' : undefined}>${words(one)}</a>`)}</nav>`;

const typeName = (type) => (kinds.has(`kind.${type}`) ? kinds(`kind.${type}`) : type);
const named = { status: (value) => core(`status.${value.toUpperCase()}`), direction: (value) => t(`direction.${value}`), type: typeName };

/** A filter in the reader's words: "failed · Image". What has no words stays as it is. */
function words(filter) {
  const { text, ...rest } = parse(filter);
  const said = Object.entries(rest).map(([key, value]) => named[key]?.(value) ?? `${key}:${value}`);
  return [...said, ...(text ? [`“${text}”`] : [])].join(' · ') || filter;
}

const Between = ({ m }) => {
  const name = m.contact_name || m.group_name;
  const title = masked.value ? undefined : `${name} ${phone(m.contact_id || m.group_id)}`;
  const who = name ? html`<span title=${title}><bdi>${mask(name)}</bdi></span>`
    : html`<${Who} number=${m.contact_id || m.group_id} />`;
  const channel = html`<span class="muted channel" title=${m.channel}>${m.channel}</span>`;
  return html`<span class="between">${m.outgoing ? channel : who}<${Icon} name="right" size=${12} /><span class="sr">${t('to')}</span>
    ${m.outgoing ? who : channel}</span>`;
};

const columns = [
  { id: 'time', get label() { return core('time'); }, cell: (m) => html`<${Time} at=${m.timestamp} />`, card: 'when' },
  { id: 'between', get label() { return t('between'); }, cell: (m) => html`<${Between} m=${m} />`, card: 'title', class: 'between-cell' },
  { id: 'type', get label() { return t('type'); }, cell: (m) => (m.otp ? html`<${Badge} tone="accent">OTP<//>` : typeName(m.type)) },
  { id: 'body', get label() { return t('text'); }, cell: (m) => (m.body ? html`<${Body} text=${toLine(m)} />`
    : html`<span class="muted">${t(m.status === 'DELETED' ? 'deleted' : m.type === 'text' ? 'textErased' : 'noText',
      { type: typeName(m.type) })}</span>`), card: 'text', class: 'body-cell' },
  { id: 'status', get label() { return t('status'); }, cell: (m) => html`<${Tick} status=${m.status} at=${m.updated_at} />
    ${m.status === 'FAILED' && html` <span class="why clip" title=${whyFailed(m.error)}><bdi>${whyFailed(m.error)}</bdi></span>`}`,
    card: 'status', class: 'status-cell' },
  { id: 'took', get label() { return t('after'); },
    cell: (m) => (m.outgoing && m.status !== 'PENDING' ? duration(Math.max(0, Date.parse(m.updated_at) - Date.parse(m.timestamp))) : ''),
    align: 'end', wide: true },
  { id: 'request', get label() { return t('request'); }, cell: (m) => html`<span class="mono clip request">${m.request_id}</span>`,
    wide: true },
];

const close = () => setQuery({ send: null, to: null, from: null, reply: null });

/** The dialog that ?send= opens; ?to=, ?from= and ?reply= fill it in. */
function SendDialog({ onSent }) {
  const { send, to, from, reply } = query.value;
  if (!send || !channelsLoaded.value) return null;
  return html`<${Dialog} open title=${t('send')} onClose=${close}>
    <${SendForm} to=${to} from=${from} reply=${reply} close=${close} onSent=${onSent} /><//>`;
}
