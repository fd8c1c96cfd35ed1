// One conversation: what was said in both directions, kept fresh, and the reply.
import { html, useState, useEffect, useLayoutEffect, useMemo, useRef } from '../view.js';
import { api } from '../api.js';
import { generation } from '../live.js';
import { href, setQuery } from '../router.js';
import { channelBy, addChannels, hasRole, networkBy } from '../state.js';
import { useKeys } from '../keys.js';
import { texts } from '../i18n.js';
import { Empty, Loading, Note, NeedsRole } from '../parts/card.js';
import { Button, IconButton } from '../parts/button.js';
import { Dialog, confirm } from '../parts/dialog.js';
import { Bubble, asBubble, excerpt, senderName } from '../parts/bubble.js';
import { Composer } from '../parts/composer.js';
import { Face } from '../parts/face.js';
import { Icon } from '../parts/icon.js';
import { lazy } from '../parts/lazy.js';
import { Badge, whyFailed } from '../parts/status.js';
import { toast } from '../parts/toast.js';
import { useBottom, useFollow, beginsDay, dayName } from '../parts/transcript.js';
import { chatDraft } from '../parts/draft.js';
import { mask, number, phone } from '../parts/who.js';
import { title } from '../shell/title.js';

const t = texts('conversations');
const core = texts('core');
const Attach = lazy(() => import('./conversation_attach.js').then((module) => module.Attach), 4);
const Timer = lazy(() => import('./conversation_timer.js').then((module) => module.Timer), 2);

const pageSize = 50;
const most = 120; // messages that are drawn: each makes typing slower; others come back by scrolling
const near = 400; // pixels from an end: more is loaded
const mostPatched = 5; // messages loaded one by one after a change

/** The messages that are loaded, oldest first and without gaps, and how many there are. Of a long chat it is a part. */
function useHistory(channel, chat, message) {
  const path = `/manage/channels/${encodeURIComponent(channel)}/chats/${encodeURIComponent(chat)}`;
  const [state, set] = useState({ list: null, total: 0, info: null, error: null });
  const now = useRef(state);
  now.current = state;
  // A response about earlier messages may count one that is not loaded yet: its own event loads it.
  const put = (data, fresh, earlier) => set((was) => {
    const page = [...data.history].reverse().map(asBubble);
    const { history, messages: total, ...info } = data;
    const old = fresh ? [] : was.list || [];
    const touches = old.length && page.length && page[0].position <= old.at(-1).position + 1 && page.at(-1).position >= old[0].position - 1;
    const all = new Map((touches ? old : []).map((m) => [m.position, m]));
    for (const m of page) all.set(m.position, m);
    const sorted = [...all.values()].sort((a, b) => a.position - b.position);
    const list = earlier ? sorted.slice(0, most) : sorted.slice(-most);
    return { list, total: Math.max(earlier ? was.total : total, list.at(-1)?.position || 0), info, error: null };
  });
  // A response may be overtaken by a later one, and must not replace a fresh start.
  const read = async (query, fresh, earlier) => {
    const start = fresh ? now.start = {} : now.start;
    const { data } = await api.get(path, { query: { limit: pageSize, ...query } });
    if (start === now.start) put(data, fresh, earlier);
  };
  const begin = async () => {
    try {
      await read(message ? { message } : {}, true)
        .catch((error) => { if (!message || error.status !== 404) throw error; return read({}, true); });
    } catch (error) {
      set((was) => ({ ...was, list: error.status === 404 ? [] : was.list, error: error.status === 404 ? null : error }));
    }
  };
  useEffect(() => { begin(); }, [message, generation.value]);
  const atEnd = () => !now.current.list?.length || now.current.list.at(-1).position === now.current.total;
  return {
    ...state,
    atEnd: atEnd(),
    begin,
    newest: () => read({}, !atEnd()),
    older: () => read({ before: now.current.list[0].position }, false, true),
    newer: () => read({ before: now.current.list.at(-1).position + pageSize + 1 }),
    /** What events tell of is loaded again: few messages one by one, what is new as a page. */
    async follow(events) {
      const { list } = now.current;
      const known = new Map(list?.map((m) => [m.message_id, m.position]));
      const changed = [...new Set(events.map((event) => known.get(event.data.message_id)))];
      const old = changed.filter(Boolean);
      if (changed.includes(undefined) || old.length > mostPatched) {
        if (atEnd()) await read({});
        else set((was) => ({ ...was, total: was.total + (changed.includes(undefined) ? 1 : 0) }));
      }
      for (const position of old.slice(0, mostPatched)) await read({ before: position + 1, limit: 1 }, false, true);
    },
  };
}

const isMessage = (channel, id) => (event) => event.channel === channel && (event.data.group_id || event.data.contact_id) === id;

export function Thread({ channel, chat, message, onBack, inner }) {
  const history = useHistory(channel, chat, message);
  const { list, info, error } = history;
  const id = info?.id || (chat.includes('@') ? chat : `${number(chat)}@c.us`);
  useFollow(['message.', 'poll.'], isMessage(channel, id), history.follow);
  const [open, setOpen] = useState('');
  const draft = useMemo(() => chatDraft(`${channel}/${id}`), [channel, id]);
  const [reply, setReply] = useState(draft.get().reply || null);
  const answer = (to) => { setReply(to); draft.put({ reply: to }); };
  const [files, setFiles] = useState([]); // to be sent, one after the other
  const [timed, setTimed] = useState(false);
  const box = useBottom(useMemo(() => list && { data: [...list].reverse() }, [list]), history.atEnd);
  useTarget(box, list, message);
  const loading = useRef(false);

  const isGroup = id.endsWith('@g.us');
  const name = mask(info?.name || (isGroup ? t('group') : phone(id)));
  useEffect(() => { title.value = name; }, [name]);
  const at = channelBy(channel);
  useEffect(() => { if (!at) api.get(`/manage/channels/${encodeURIComponent(channel)}`).then(({ data }) => addChannels([data]), () => {});
    }, [channel]);
  const to = isGroup ? { group_id: id } : { contact_id: id };
  const call = (method, path, body) => api[method](path, body, { channel, headers: { Prefer: 'respond-async' } });
  const act = async (method, path, body) => {
    setOpen('');
    const { data } = await call(method, path, body);
    if (data?.error) toast(data.error.message, { kind: 'bad' });
    if (history.atEnd) await history.newest();
  };
  const send = async (path, body) => {
    box.follow();
    await call('post', path, { ...to, ...body, ...(reply && { reply_to: reply.id }) });
    answer(null);
    await history.newest();
  };
  const toEnd = () => {
    box.follow();
    if (message) setQuery({ message: null }, { replace: true });
    else history.newest();
  };
  const lastIn = list?.findLast((m) => !m.outgoing);
  const unseen = lastIn?.status === 'RECEIVED' && list.at(-1) === lastIn;
  const seen = () => act('post', '/send-message/seen', { message_id: lastIn.message_id });
  useKeys([['s', t('markSeen'), () => (unseen ? seen() : false), 'support'],
    ['r', t('reply'), () => document.querySelector('.thread textarea')?.focus(), 'support']]);

  const author = (m) => (m.outgoing ? channel : mask(m.contact_name || phone(m.contact_id || id)));
  const byID = new Map(list?.map((m) => [m.id, m]));
  const toQuote = (m) => m.reply_to && (byID.has(m.reply_to) ? { who: author(byID.get(m.reply_to)), text: excerpt(byID.get(m.reply_to)) }
    : m.quoted?.body ? { text: mask(m.quoted.body) } : {});
  const onScroll = async () => {
    box.onScroll();
    if (!box.ref.current || loading.current || !list?.length) return;
    const { scrollTop, scrollHeight, clientHeight } = box.ref.current;
    const older = scrollTop <= near && list[0].position > 1;
    if (!older && (history.atEnd || scrollHeight - scrollTop - clientHeight > near)) return;
    loading.current = true;
    await (older ? history.older() : history.newer()).catch(() => {});
    loading.current = false;
    box.ref.current?.dispatchEvent(new Event('scroll'));
  };
  // Escape closes what is innermost: actions, what is answered, the chat.
  inner.current = () => {
    if (open) setOpen('');
    else if (reply) answer(null);
    return Boolean(open || reply);
  };
  const react = (m) => (emoji) => act('put', '/send-message/reaction', { message_id: m.message_id, reaction: m.own_reaction === emoji
    ? '' : emoji });
  const remove = (m) => async () => {
    if (!at?.simulated &&
      !await confirm({ title: t('deleteAsk'), text: t('deleteText'), action: t('delete'), danger: true })) return;
    await act('del', `/send-message/delete?message_id=${encodeURIComponent(m.message_id)}`);
  };

  return html`<section class="thread" aria-label=${t('with', { name })}>
    <${ThreadHead} name=${name} id=${id} info=${info} channel=${channel} at=${at} isGroup=${isGroup} onBack=${onBack}
      seen=${unseen && hasRole('support') && seen} onTimer=${() => setTimed(true)} />
    <div class="chat" onDrop=${(event) => { event.preventDefault(); if (hasRole('support')) setFiles([...event.dataTransfer.files]); }}
      onDragOver=${(event) => event.preventDefault()}>
      <div class="transcript" role="log" aria-label=${t('with', { name })} tabindex="0" ref=${box.ref} onScroll=${onScroll}>
        ${error && !list && html`<${Note} kind="bad" title=${core('notLoaded')}>${error.message} <${Button} small onClick=${history.begin}>
          ${core('again')}<//><//>`}
        ${!list && !error && html`<${Loading} rows=${5} />`}
        ${list?.length === 0 && html`<${Empty} icon="conversations" title=${t('nothingYet', { name: html`<bdi>${name}</bdi>` })}
          text=${hasRole('support') ? t('nothingYetText') : ''} />`}
        ${list?.[0]?.position > 1 && html`<div class="earlier"><${Button} small onClick=${history.older}>${t('earlier')}<//></div>`}
        ${list?.flatMap((m, i) => [beginsDay(m, list[i - 1]) && html`<p class="day" key=${`day${m.position}`}>${dayName(m)}</p>`,
          html`<${Bubble} key=${m.position} m=${m} own=${m.outgoing} author=${author(m)}
            named=${isGroup && !m.outgoing && list[i - 1]?.contact_id !== m.contact_id} status=${m.status} quote=${toQuote(m)}
            onQuote=${m.reply_to && (() => setQuery({ message: m.reply_to }))} marked=${m.id === message || m.message_id === message}
            file=${() => api.blob(`/manage/messages/${encodeURIComponent(m.message_id)}/media`, { query: { channel } })}
              note=${html`<${Notes} m=${m} before=${list[i - 1]} channel=${channel} />`}
            open=${open === m.message_id} onOpen=${setOpen}
              onReply=${hasRole('support') && !at?.archive_of &&
                (() => { answer({ id: m.id, who: author(m), text: excerpt(m) }); setOpen(''); })}
            onReact=${hasRole('support') && !at?.archive_of && react(m)}
              onDelete=${hasRole('support') && m.outgoing && !at?.archive_of && remove(m)}>
            ${hasRole('support') && !m.outgoing && m.status === 'RECEIVED' &&
              html`<${Button} small kind="quiet" icon="check"
                onClick=${() => act('post', '/send-message/seen', { message_id: m.message_id })}>${t('markSeen')}<//>`}
            <${Button} small kind="quiet" icon="info" href=${href('/messages', { open: `${channel}.${m.message_id}`, channel })}>
              ${t('details')}<//><//>`])}
        ${list && !history.atEnd && html`<div class="earlier"><${Button} small onClick=${history.newer}>${t('newer')}<//></div>`}
      </div>
      ${list && !history.atEnd ? html`<button type="button" class="button small missed" onClick=${toEnd}>${t('toEnd')}</button>`
        : box.missed > 0 && html`<button type="button" class="button primary small missed" onClick=${box.toBottom}>
        ${t('newBelow', { n: box.missed })}</button>`}
      <${Reply} key=${id} at=${at} channel=${channel} send=${send} reply=${reply} onReplyEnd=${() => answer(null)} onFiles=${setFiles}
        kept=${draft.get().text} onText=${(text) => draft.put({ text })}
        lastOwn=${list?.findLast((m) => m.outgoing && m.type === 'text' && !m.deleted && !m.otp)?.body} />
    </div>
    <${Dialog} open=${timed} title=${t('timer')} onClose=${() => setTimed(false)}>
      <${Timer} to=${to} channel=${channel} close=${() => setTimed(false)} /><//>
    <${Dialog} open=${files.length > 0} title=${t('sendFile', { name })} onClose=${() => setFiles([])}>
      <${Attach} key=${files.length} file=${files[0]} more=${files.length - 1} channel=${channel} send=${send}
        onSent=${() => setFiles((was) => was.slice(1))} /><//>
  </section>`;
}

// A link to a message shows it in the middle, once it is there.
function useTarget(box, list, message) {
  const shown = useRef('');
  const there = list?.some((m) => m.id === message || m.message_id === message);
  useLayoutEffect(() => {
    if (!message || !there || shown.current === message) return;
    shown.current = message;
    box.leave();
    const list = box.ref.current;
    const one = list.querySelector('.bubble.marked')?.getBoundingClientRect();
    const room = list.getBoundingClientRect();
    if (one) list.scrollTop += one.top - room.top - Math.max(0, (room.height - one.height) / 2);
  }, [message, there]);
}

function ThreadHead({ name, id, info, channel, at, isGroup, onBack, seen, onTimer }) {
  const digits = !isGroup && number(id);
  const network = at && (at.simulated ? core('sandbox') : core('real'));
  return html`<header class="thread-head">
    <span class="only-small"><${IconButton} icon="left" label=${t('back')} onClick=${onBack} /></span>
    <${Face} id=${id} name=${info?.name || ''} group=${isGroup} />
    <div class="grow"><h2 class="clip"><bdi>${name}</bdi></h2>
      <p class="muted clip">${[info?.name && digits && mask(phone(id)), at?.name || channel, network].filter(Boolean)
        .map((part, i) => html`${i > 0 && ' · '}<bdi>${part}</bdi>`)}
        ${info?.archived && html` <${Badge}>${t('archived')}<//>`}</p></div>
    ${seen && html`<${Button} small icon="check" onClick=${seen}>${t('markSeen')}<//>`}
    ${digits && at?.simulated && !at.archive_of &&
      html`<span class="hide-small"><a class="icon-button" href=${href(`/phone/${digits}`, { to: channel })} aria-label=${t('onPhone')}
        title=${t('onPhone')}><${Icon} name="phone" /></a></span>`}
    ${info && hasRole('support') && at && !at.archive_of && networkBy(at.network)?.kinds.includes('disappearing') &&
      html`<${IconButton} icon="clock" label=${t('timer')} ...${Timer.near} onClick=${onTimer} />`}
    ${digits && html`<a class="icon-button" href=${href(`/contacts/${digits}`)} aria-label=${t('contact')} title=${t('contact')}>
      <${Icon} name="user" /></a>`}
    <span class="hide-small"><${IconButton} icon="close" label=${core('close')} onClick=${onBack} /></span>
  </header>`;
}

/** Why it failed, and who sent it, unless the one above says so. */
function Notes({ m, before, channel }) {
  const known = before?.sent_by && before.sent_by.kind === m.sent_by?.kind && before.sent_by.id === m.sent_by.id;
  return html`${m.status === 'FAILED' &&
    html`<p class="bubble-failed"><${Icon} name="bad" size=${14} /> <bdi>${whyFailed(m.error)}</bdi>${' '}
      <a href=${href('/messages', { open: `${channel}.${m.message_id}`, channel })}>${t('details')}</a></p>`}
    ${m.sent_by && !known && html`<p class="bubble-by muted">
      ${t(`sentBy.${m.sent_by.kind}`, { name: html`<bdi>${senderName(m.sent_by)}</bdi>` })}</p>`}`;
}

function Reply({ at, channel, send, onFiles, ...rest }) {
  const input = useRef();
  if (!at) return html`<div class="composer" />`;
  if (!hasRole('support')) return html`<div class="composer"><${NeedsRole} role="support" /></div>`;
  if (at.archive_of) return html`<div class="composer"><${Note}>${t('noReplies')}<//></div>`;
  const pick = (event) => { onFiles([...event.target.files]); event.target.value = ''; };
  return html`<${Composer} ...${rest} say=${(message) => send('/send-message/text', { message })} onFiles=${onFiles}
    note=${at.status !== 'WORKING' &&
      html`<${Note} kind="warn">${t('notWorking', { status: core(`channel.${at.status}`) })} <a href=${href(`/channels/${channel}`)}>
        ${core('page.channel')}</a><//>`}
    before=${html`<${IconButton} icon="attach" label=${t('attach')} ...${Attach.near}
        onClick=${() => input.current.click()} />
      <input type="file" multiple class="sr" tabindex="-1" aria-label=${t('attach')} ref=${input} onChange=${pick} />`} />`;
}
