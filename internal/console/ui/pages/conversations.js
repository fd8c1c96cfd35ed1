// Chats of a channel or of all, for people who reply: the list at the left, the conversation at the right.
import { html, useState, useEffect, useMemo, useRef, classes } from '../view.js';
import { api, useLoad } from '../api.js';
import { go, href, matched, query, setQuery } from '../router.js';
import { channelBy, manyChannels, sandboxes, selected, toLine } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, clock, day, isToday, full } from '../i18n.js';
import { Empty, Failed, Loading } from '../parts/card.js';
import { Button, IconButton } from '../parts/button.js';
import { Icon } from '../parts/icon.js';
import { Face } from '../parts/face.js';
import { Tick } from '../parts/status.js';
import { useHeldRows } from '../parts/held_rows.js';
import { kindName } from '../parts/bubble.js';
import { mask, phone } from '../parts/who.js';
import { title } from '../shell/title.js';
import { Thread } from './conversation.js';

const t = texts('conversations');
const core = texts('core');

const typingPause = 250; // milliseconds without a key before a search begins

export const toKey = (chat) => `${chat.channel}/${chat.id}`;
export const toAddress = (chat, more) => href(`/conversations/${encodeURIComponent(chat.channel)}/${encodeURIComponent(chat.id)}`, more);
export const toTitle = (chat) => mask(chat.name || (chat.is_group ? t('group') : phone(chat.id)));

export default function Page({ route: { params } }) {
  const { q = '', message } = query.value;
  const open = params.code && params.chat ? { channel: params.code, id: params.chat } : null;
  const list = useRef();
  const inner = useRef(); // of the open chat: closes what is open in it
  useEffect(() => { if (!open) title.value = t('title'); }, [Boolean(open)]);
  const back = () => go('/conversations', { q });
  useKeys([
    ['ArrowDown', t('next'), () => step(list.current, 1)],
    ['ArrowUp', t('previous'), () => step(list.current, -1)],
    ['j', '', () => step(list.current, 1)],
    ['k', '', () => step(list.current, -1)],
    ['Escape', core('back'), () => (open ? inner.current?.() || back() : q ? setQuery({ q: null }) : false)],
  ]);
  return html`<h1 class="sr" tabindex="-1">${t('title')}</h1>
    <div class=${classes('inbox', open && 'open')}>
      <section class="inbox-list" aria-label=${t('list')} ref=${list}>
        <${Search} q=${q} onDown=${() => step(list.current, 1)} onEnter=${() => list.current.querySelector('a.chat-row')?.click()} />
        ${q ? html`<${Found} key=${q + selected.value} q=${q} open=${open} />` : html`<${Chats} key=${selected.value} open=${open} />`}
      </section>
      ${open ? html`<${Thread} key=${toKey(open)} channel=${open.channel} chat=${open.id} message=${message} onBack=${back}
        inner=${inner} />`
        : html`<section class="inbox-none hide-small"><${Empty} icon="conversations" title=${t('pick')} text=${t('pickText')} /></section>`}
    </div>`;
}

// The focus goes from row to row; the one that is open is where it begins.
function step(list, by) {
  const rows = [...list.querySelectorAll('a.chat-row')];
  const at = rows.indexOf(document.activeElement);
  const from = at >= 0 ? at : rows.findIndex((row) => row.getAttribute('aria-current'));
  rows[Math.max(0, Math.min(rows.length - 1, from + by))]?.focus();
  return rows.length > 0;
}

function Search({ q, onDown, onEnter }) {
  const [text, setText] = useState(q);
  const timer = useRef(0);
  useEffect(() => { setText(q); }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const find = (value) => { if (matched.value.name === 'conversations') setQuery({ q: value.trim() || null }, { replace: true }); };
  const type = (value) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => find(value), typingPause);
  };
  const keys = (event) => {
    if (event.key === 'ArrowDown') { event.preventDefault(); onDown(); }
    if (event.key === 'Enter') { event.preventDefault(); if (text.trim() === q) onEnter(); else find(text); }
    if (event.key === 'Escape') { event.stopPropagation(); if (text) { setText(''); find(''); } else event.target.blur(); }
  };
  return html`<div class="filter"><${Icon} name="search" />
    <input type="search" data-search aria-label=${t('search')} placeholder=${t('searchHint')} value=${text} autocomplete="off"
      onInput=${(event) => type(event.target.value)} onKeyDown=${keys} />
    ${text && html`<${IconButton} small icon="close" label=${core('clearFilter')} onClick=${() => { setText(''); find(''); }} />`}</div>`;
}

const toPath = (code) => (code ? `/manage/channels/${encodeURIComponent(code)}/chats` : '/manage/chats');
const newestFirst = (a, b) => (a.last.timestamp < b.last.timestamp ? 1 : -1);

/** The chats that are known so far, newest first. The first page is loaded again when something happens. */
function useChats(code) {
  const first = useLoad(() => api.get(toPath(code)), [], { on: ['message.', 'group.'] });
  const known = useRef(new Map()).current;
  const [cursor, setCursor] = useState(undefined); // undefined: only the first page is there
  const [turn, setTurn] = useState(0);
  const rows = useMemo(() => {
    for (const row of first.data?.data || []) known.set(toKey(row), row);
    return first.data && [...known.values()].sort(newestFirst);
  }, [first.data, turn]);
  const next = cursor === undefined ? first.data?.meta.next_cursor : cursor;
  const older = async () => {
    const page = await api.get(toPath(code), { query: { cursor: next } });
    for (const row of page.data) if (!known.has(toKey(row))) known.set(toKey(row), row);
    setCursor(page.meta.next_cursor);
    setTurn((n) => n + 1);
  };
  return { load: first, rows, more: Boolean(next), older };
}

function Chats({ open }) {
  const { load, rows, more, older } = useChats(selected.value);
  const [over, setOver] = useState(false);
  const [away, setAway] = useState(false);
  const [within, setWithin] = useState(false);
  const [shown, , show] = useHeldRows(rows, toKey, over || away || within, selected.value);
  const box = useRef();
  if (load.error && !rows) return html`<${Failed} load=${load} />`;
  if (!rows) return html`<${Loading} rows=${8} />`;
  if (!rows.length) return html`<${Empty} icon="conversations" title=${t('none')} text=${t('noneText')}>
    <${Button} kind="primary" href=${sandboxes.value.length ? href('/phone') : href('/channels')}>
      ${core(sandboxes.value.length ? 'page.phone' : 'page.channels')}<//><//>`;
  const above = shown.length ? rows.findIndex((row) => toKey(row) === toKey(shown[0])) : 0;
  const toTop = () => { box.current.scrollTop = 0; show(); };
  return html`<div class="chat-rows" ref=${box} onScroll=${(event) => setAway(event.currentTarget.scrollTop > 40)}
    onPointerEnter=${(event) => setOver(event.pointerType === 'mouse')} onPointerLeave=${() => setOver(false)}
    onFocusIn=${(event) => setWithin(event.target.matches('.chat-row'))} onFocusOut=${() => setWithin(false)}>
    <div class="new-chats">${above > 0 && html`<button type="button" class="button primary small" onClick=${toTop}>
      ${core('newRows', { n: above })}<${Icon} name="arrowup" size=${14} /></button>`}</div>
    ${/* each place keeps its element: what flows in moves nothing */ ''}
    <ul aria-label=${t('list')}>${shown.map((chat, i) =>
      html`<${Row} key=${i} chat=${chat} open=${open && toKey(open) === toKey(chat)} />`)}</ul>
    ${more && html`<${Older} older=${older} />`}
  </div>`;
}

// The next page comes when the end of the list comes near; the button is for those who do not scroll.
function Older({ older }) {
  const box = useRef();
  const latest = useRef(older);
  latest.current = older;
  const [busy, setBusy] = useState(false);
  const load = async () => {
    if (busy) return;
    setBusy(true);
    try { await latest.current(); } finally { setBusy(false); }
  };
  const run = useRef(load);
  run.current = load;
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => { if (entry.isIntersecting) run.current().catch(() => {}); },
      { rootMargin: '400px' });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [busy]);
  return html`<div class="older" ref=${box}><${Button} small busy=${busy} onClick=${load}>${t('older')}<//></div>`;
}

const when = (at) => (isToday(at) ? clock(at).slice(0, 5) : day(at));

/** The last message in one line. */
function line(m) {
  if (m.status === 'DELETED') return t('deleted');
  return toLine(m) ? mask(toLine(m)) : kindName(m.type);
}

// The channel of a chat, where the list has those of several.
const At = ({ code }) => html`<span class=${classes('chat-channel clip', channelBy(code)?.simulated === false && 'real')} title=${code}>
  ${code}</span>`;

function Row({ chat, open, more }) {
  const { last, unread } = chat;
  const author = chat.is_group && !last.outgoing && (last.contact_name || phone(last.contact_id));
  return html`<li><a class=${classes('chat-row', unread > 0 && 'unseen')} href=${toAddress(chat, more)}
    aria-current=${open ? 'true' : undefined}>
    <${Face} id=${chat.id} name=${chat.name} group=${chat.is_group} />
    <b class="clip"><bdi>${toTitle(chat)}</bdi></b><time datetime=${last.timestamp} title=${full(last.timestamp)}>
      ${when(last.timestamp)}</time>
    <span class="chat-last">${!selected.value && manyChannels.value && html`<${At} code=${chat.channel} />`}
      ${last.outgoing && html`<${Tick} status=${last.status} word=${false} />`}<bdi class="clip">${author && html`${mask(author)}: `}
      ${line(last)}</bdi></span>
    ${unread > 0 ? html`<span class="unread">${unread > 9 ? '9+' : unread}<span class="sr"> ${t('unread')}</span></span>` : html`<span />`}
  </a></li>`;
}

// Who types a number as it is dialled at home means the country of the channel.
function withCountry(text) {
  const own = channelBy(selected.value)?.number;
  const code = own && phone(own).match(/^\+(\d+) /)?.[1];
  return code && /^0\d[\d\s-]{2,}$/.test(text) ? code + text.replace(/\D/g, '').slice(1) : text;
}

/** What a search finds: chats by name and number, and messages by their text. */
function Found({ q, open }) {
  const code = selected.value;
  const chats = useLoad(() => api.get(toPath(code), { query: { search: withCountry(q) } }));
  const said = useFoundMessages(q, code);
  if (chats.error && !chats.data) return html`<${Failed} load=${chats} />`;
  if (!chats.data || !said.rows) return html`<${Loading} rows=${6} />`;
  const none = !chats.data.data.length && !said.rows.length && !said.cursor;
  return html`<div class="chat-rows">
    ${none && html`<${Empty} icon="search" title=${t('noMatch', { q: html`<bdi>${q}</bdi>` })} text=${t('noMatchText')} />`}
    ${chats.data.data.length > 0 && html`<h2>${t('byName')}</h2><ul aria-label=${t('byName')}>${chats.data.data.map((chat) => html`
      <${Row} key=${toKey(chat)} chat=${chat} more=${{ q }} open=${open && toKey(open) === toKey(chat)} />`)}</ul>`}
    ${said.rows.length > 0 && html`<h2>${t('byText')}</h2><ul aria-label=${t('byText')}>
      ${said.rows.map((m) => html`<${Hit} key=${m.channel + m.message_id} m=${m} q=${q} />`)}</ul>`}
    ${said.cursor && html`<div class="older"><${Button} small onClick=${said.older}>
      ${t(said.rows.length ? 'olderHits' : 'searchOn')}<//></div>`}
  </div>`;
}

function useFoundMessages(q, code) {
  const [state, set] = useState({});
  const find = async (cursor) => {
    const { data, meta } = await api.get('/manage/messages', { query: { text: q, channel: code, limit: 20, cursor } });
    set((was) => ({ rows: [...(was.rows || []), ...data], cursor: meta.next_cursor }));
  };
  useEffect(() => { find().catch(() => set({ rows: [] })); }, []);
  return { ...state, older: () => find(state.cursor) };
}

function Hit({ m, q }) {
  const chat = { channel: m.channel, id: m.group_id || m.contact_id, is_group: Boolean(m.group_id),
    name: m.group_id ? m.group_name : m.contact_name };
  return html`<li><a class="chat-row" href=${toAddress(chat, { q, message: m.id })}
    aria-current=${query.value.message === m.id ? 'true' : undefined}>
    <${Face} id=${chat.id} name=${chat.name} group=${chat.is_group} />
    <b class="clip"><bdi>${toTitle(chat)}</bdi></b><time datetime=${m.timestamp} title=${full(m.timestamp)}>${when(m.timestamp)}</time>
    <span class="chat-last">${!selected.value && manyChannels.value && html`<${At} code=${m.channel} />`}
      ${m.outgoing && html`<${Tick} status=${m.status} word=${false} />`}
      <bdi class="clip">${mask(around(toLine(m), q))}</bdi></span><span />
  </a></li>`;
}

// The part of a long text that was looked for.
function around(text, q) {
  const at = text.toLowerCase().indexOf(q.toLowerCase());
  return at > 30 ? `…${text.slice(at - 15, at + 200)}` : text.slice(0, 200);
}
