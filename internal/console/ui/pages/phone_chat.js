// A chat of a simulated phone with a channel: what was said, kept fresh, and the composer.
import { html, useState, useEffect, useLayoutEffect, useRef, classes } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { href } from '../router.js';
import { server, masked, may } from '../state.js';
import { texts, clock, full } from '../i18n.js';
import { Loading, Failed, Empty } from '../parts/card.js';
import { Button, IconButton, Copy } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';
import { Code, snippet } from '../parts/code.js';
import { phone, number, mask, Body } from '../parts/who.js';
import { Composer } from './phone_composer.js';
import { Icon } from '../parts/icon.js';
import { Tick, Badge } from '../parts/status.js';
import { Picture, Voice, Film, Document, Place } from './phone_media.js';

const t = texts('phone');

const steps = [50, 100, 200]; // how many messages are shown, more on request
const atMostEvery = 200; // milliseconds between two loads, however much happens

/** Calls reload at once when something happens in a chat, and again for what happened meanwhile. */
function useFollow(channel, digits, reload) {
  const state = useRef({}).current;
  useEvents(['message.', 'poll.', 'otp.'], async (events) => {
    if (!events.some((event) => event.channel === channel && number(event.data.contact_id) === digits)) return;
    state.again = true;
    if (state.busy) return;
    state.busy = true;
    while (state.again) {
      state.again = false;
      await reload();
      await new Promise((done) => { setTimeout(done, atMostEvery); });
    }
    state.busy = false;
  });
}

/**
 * device: the phone, as the server lists it. draft: a text that is typed in already; onDraftSent is called when it was sent.
 * onMessages(list) hears what is on the screen, oldest first.
 */
export function Chat({ channel, device, draft, onDraftSent, onMessages }) {
  const digits = device.number;
  const [step, setStep] = useState(0);
  const [open, setOpen] = useState('');
  const [reply, setReply] = useState(null);
  const [inspected, setInspected] = useState(null);
  const load = useLoad(() => api.get(`/sandbox/phones/${digits}/chat`, { channel, query: { limit: steps[step] } }), [step]);
  useFollow(channel, digits, load.reload);
  const list = load.data ? [...load.data.data].reverse() : null;
  const byID = new Map(list?.map((m) => [m.id, m]));
  useReading(channel, device, list);
  useEffect(() => { if (list) onMessages?.(list); }, [load.data]);
  const box = useBottom(load.data, step);

  const act = async (body) => {
    setOpen('');
    await api.post(`/sandbox/phones/${digits}/send`, body, { channel });
    await load.reload();
  };
  const say = async (body) => {
    box.follow();
    await act({ ...body, ...(reply && body.type !== 'reaction' && { reply_to: reply.id }) });
    setReply(null);
    if (draft && body.message) onDraftSent?.();
  };
  const who = { phone: mask(device.name || phone(digits)), channel };
  const lastOwn = list?.findLast((m) => m.from_phone && m.type === 'text' && !m.deleted)?.body;

  return html`<div class="chat">
    <div class="transcript" role="log" aria-label=${t('transcript', who)} tabindex="0" ref=${box.ref} onScroll=${box.onScroll}>
      ${load.error && !list && html`<${Failed} load=${load} />`}
      ${!list && !load.error && html`<${Loading} rows=${4} />`}
      ${list && load.data.meta.has_more && html`<div class="earlier">${step < steps.length - 1
        ? html`<${Button} small onClick=${() => setStep(step + 1)}>${t('earlier')}<//>`
        : html`<a href=${href('/messages', { channel, q: `to:${digits}` })}>${t('allMessages')}</a>`}</div>`}
      ${list?.length === 0 && html`<${Nothing} channel=${channel} device=${device} />`}
      ${list?.map((m, i) => html`${newDay(m, list[i - 1]) && html`<p class="day" key=${`day${m.id}`}>${new Date(m.timestamp).toDateString() === new Date().toDateString() ? t('today') : dayOf(m)}</p>`}
        <${Bubble} key=${m.message_id} m=${m} quoted=${byID.get(m.reply_to)} who=${who} where=${{ channel, digits }} act=${act}
          open=${open === m.message_id} onOpen=${setOpen} onReply=${() => { setReply(m); setOpen(''); }} onInspect=${() => setInspected(m)} />`)}
    </div>
    ${box.missed > 0 && html`<button type="button" class="button primary small missed" onClick=${box.toBottom}>${t('newBelow', { n: box.missed })}</button>`}
    <${Composer} channel=${channel} device=${device} draft=${draft} say=${say} lastOwn=${lastOwn}
      reply=${reply && { who: reply.from_phone ? who.phone : who.channel, text: excerpt(reply) }} onReplyEnd=${() => setReply(null)} />
    <${Dialog} wide open=${Boolean(inspected)} title=${t('inspect')} onClose=${() => setInspected(null)}>
      ${inspected && html`<${Code} text=${mask(JSON.stringify(byID.get(inspected.id) || inspected, null, 2))} what="JSON" />
        <p><a href=${href('/messages', { channel, open: inspected.message_id })}>${t('inMessages')}</a></p>`}<//>
  </div>`;
}

const newDay = (m, before) => before?.timestamp.slice(0, 10) !== m.timestamp.slice(0, 10);
const dayOf = (m) => new Date(m.timestamp).toLocaleDateString(document.documentElement.lang, { dateStyle: 'medium' });

function Nothing({ channel, device }) {
  const request = { method: 'POST', path: '/api/send-message/text', headers: { 'X-Channel': channel }, body: { contact_id: mask(device.contact_id), message: t('hello') } };
  return html`<${Empty} title=${t('emptyTitle', { name: mask(device.name || phone(device.number)) })} text=${t('emptyText', { number: mask(phone(device.number)) })}>
    ${server.value && html`<${Code} wrap text=${snippet('curl', request)} what="curl" />`}<//>`;
}

// A chat that is open and seen is read, as on a phone in the hand.
function useReading(channel, device, list) {
  const marked = useRef('');
  const read = () => {
    const newest = list?.findLast((m) => !m.from_phone && m.status === 'DELIVERED');
    if (!newest || marked.current === newest.id || document.hidden || device.reads === 'never' || !device.on_network || !may('support')) return;
    marked.current = newest.id;
    api.post(`/sandbox/phones/${device.number}/read`, {}, { channel }).catch(() => { marked.current = ''; });
  };
  const latest = useRef(read);
  latest.current = read;
  useEffect(read, [list?.at(-1)?.status, list?.length, list?.at(-1)?.id, device.reads]);
  useEffect(() => {
    const seen = () => latest.current();
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, []);
}

// Keeps the newest message in view if the reader is at the bottom, else keeps the scroll position.
function useBottom(data, step) {
  const ref = useRef();
  const [missed, setMissed] = useState(0);
  const state = useRef({ stuck: true, height: 0, count: 0, last: '' }).current;
  const toBottom = () => { ref.current.scrollTop = ref.current.scrollHeight; setMissed(0); };
  useLayoutEffect(() => {
    const box = ref.current;
    const list = data?.data || [];
    const place = list.findIndex((m) => m.id === state.last);
    const fresh = state.last ? (place < 0 ? list.length : place) : 0;
    if (state.stuck) toBottom();
    else if (state.step !== step) box.scrollTop += box.scrollHeight - state.height;
    else if (fresh) setMissed((was) => was + fresh);
    Object.assign(state, { height: box.scrollHeight, last: list[0]?.id || '', step: data ? step : state.step });
  }, [data]);
  // The room changes too: a window that shrinks, a reply that opens, a picture without a size.
  useEffect(() => {
    const watch = new ResizeObserver(() => { if (state.stuck && ref.current) toBottom(); });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return {
    ref, missed, toBottom,
    follow() { state.stuck = true; },
    onScroll() {
      const { scrollHeight, scrollTop, clientHeight } = ref.current;
      state.stuck = scrollHeight - scrollTop - clientHeight < 40;
      if (state.stuck && missed) setMissed(0);
    },
  };
}

// One message on a phone's screen, whatever its kind, and what can be done with it.

const core = texts('core');

const emojis = ['👍', '❤️', '😂', '😮', '😢', '🙏'];
const carried = { image: Picture, voice: Voice, video: Film, file: Document, location: Place };

/** A message in one line: its text without formatting, or its kind. */
export const excerpt = (m) => (m.deleted ? t('deleted') : mask(m.body.split(emphasis).filter((_, i) => i % 3 !== 1).join('')) || t(`kind.${m.type}`));

/**
 * m: the message; quoted: what it answers, if that is known. act(body) does something as the phone; open says
 * whether what can be done is shown, onOpen(id) shows it. Without act and onOpen it is only looked at.
 */
export function Bubble({ m, quoted, who, where, act, open, onOpen, onReply, onInspect }) {
  const own = m.from_phone;
  const Carried = !m.deleted && carried[m.type];
  return html`<div class=${classes('bubble', own ? 'own' : 'theirs', m.deleted && 'deleted')} data-id=${m.id}>
    <span class="sr">${own ? who.phone : who.channel}: </span>
    ${m.reply_to && !m.deleted && html`<blockquote class="quoted">${quoted
      ? html`<b>${quoted.from_phone ? who.phone : who.channel}</b><bdi class="clip">${excerpt(quoted)}</bdi>` : t('quotedGone')}</blockquote>`}
    ${Carried && html`<${Carried} m=${m} ...${where} />`}
    ${m.deleted ? html`<em>${t('deleted')}</em>` : m.poll ? html`<${Poll} m=${m} act=${act} />` : m.type !== 'location' && m.body && html`<${Text} m=${m} />`}
    ${m.preview && html`<${Preview} preview=${m.preview} />`}
    ${m.codes.length > 0 && !own && !masked.value && html`<div class="row">${m.codes.slice(0, 3).map((code) => html`
      <${Copy} key=${code} small text=${code} what=${code}>${core('copy', { what: code })}<//>`)}</div>`}
    <div class="bubble-foot">
      ${m.reactions.length > 0 && html`<span class="reactions" aria-label=${t('reactions')} role="img">${m.reactions.join(' ')}</span>`}
      ${m.copies > 1 && html`<${Badge} tone="warn">${t('copies', { n: m.copies })}<//>`}
      <time datetime=${m.timestamp} title=${full(m.timestamp)}>${clock(m.timestamp).slice(0, 5)}</time>
      ${own && html`<${Tick} word=${false} status=${m.status === 'RECEIVED' ? 'DELIVERED' : m.status} />`}
      ${onOpen && html`<${IconButton} small icon="more" label=${t('more', { text: excerpt(m).slice(0, 40) })} aria-expanded=${String(open)} onClick=${() => onOpen(open ? '' : m.message_id)} />`}
    </div>
    ${open && html`<div class="bubble-acts">
      ${!m.deleted && html`<${Button} small kind="quiet" icon="reply" onClick=${onReply}>${t('reply')}<//>
        ${emojis.map((emoji) => html`<button key=${emoji} type="button" class="emoji" aria-label=${t('react', { emoji })}
          onClick=${() => act({ type: 'reaction', message_id: m.message_id, reaction: m.reactions.includes(emoji) ? '' : emoji })}>${emoji}</button>`)}
        ${own && html`<${Button} small kind="quiet" icon="trash" onClick=${() => act({ type: 'delete', message_id: m.message_id })}>${t('delete')}<//>`}`}
      <${Button} small kind="quiet" icon="code" onClick=${onInspect}>${t('inspect')}<//>
    </div>`}
  </div>`;
}

// *bold* and _slanted_, as phones show them.
const emphasis = /(?<![\p{L}\p{N}])([*_])(?=\S)([^*_\n]*\S)\1(?![\p{L}\p{N}])/u;

function emphasised(text) {
  const pieces = text.split(emphasis); // before, mark, words, before, …
  return pieces.map((piece, i) => (i % 3 === 0 ? piece : i % 3 === 2 && html`<${pieces[i - 1] === '*' ? 'b' : 'i'}>${piece}<//>`));
}

// What is an address in the text is a link; everything else is text and nothing else.
function Text({ m }) {
  if (masked.value) return html`<${Body} text=${m.body} />`;
  const pieces = [];
  let rest = m.body;
  for (const link of m.links) {
    const at = rest.indexOf(link);
    if (at < 0) continue;
    pieces.push(emphasised(rest.slice(0, at)), html`<a href=${link} target="_blank" rel="noreferrer noopener">${link}</a>`);
    rest = rest.slice(at + link.length);
  }
  return html`<bdi class="body">${pieces}${emphasised(rest)}</bdi>`;
}

function Preview({ preview: { url, title, description, thumbnail } }) {
  return html`<a class="preview" href=${url} target="_blank" rel="noreferrer noopener">
    ${thumbnail && html`<img src="data:image/jpeg;base64,${thumbnail}" alt="" />`}
    <span><b class="clip"><bdi>${mask(title || url)}</bdi></b>${description && html`<span class="muted"><bdi>${mask(description)}</bdi></span>`}
    <span class="muted row nowrap"><${Icon} name="link" size=${14} />${new URL(url).host}</span></span></a>`;
}

function Poll({ m, act }) {
  const { title, options, multiple } = m.poll;
  const vote = (name) => {
    const has = m.votes.includes(name);
    const others = multiple ? m.votes.filter((other) => other !== name) : [];
    return act({ type: 'vote', message_id: m.message_id, options: has ? others : [...others, name] });
  };
  return html`<div class="poll" role="group" aria-label=${mask(title)}><b><${Body} text=${title} /></b>
    <span class="muted">${t(multiple ? 'pollMany' : 'pollOne')}</span>
    ${options.map(({ name, votes }) => html`<button key=${name} type="button" class="option" aria-pressed=${String(m.votes.includes(name))}
      disabled=${m.from_phone || !act} onClick=${() => vote(name)}><i aria-hidden="true" class=${multiple ? '' : 'round'} /><bdi class="grow">${mask(name)}</bdi><span class="mono-num">${votes}</span></button>`)}</div>`;
}
