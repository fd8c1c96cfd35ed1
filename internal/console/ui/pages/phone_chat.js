// A chat of a simulated phone with a channel: what was said, kept fresh, and the composer.
import { html, useState, useEffect, useRef } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { server, hasRole } from '../state.js';
import { texts } from '../i18n.js';
import { Loading, Failed, Empty, Note, NeedsRole } from '../parts/card.js';
import { Button, IconButton } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';
import { Curl } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { phone, number, mask } from '../parts/who.js';
import { Bubble, excerpt } from '../parts/bubble.js';
import { useBottom, useFollow, beginsDay, dayName } from '../parts/transcript.js';
import { Composer } from '../parts/composer.js';

const t = texts('phone');

const steps = [50, 100, 200]; // how many messages are shown, more on request

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
  useFollow(['message.', 'poll.', 'otp.'], (event) => event.channel === channel && number(event.data.contact_id) === digits, load.reload);
  const list = load.data ? [...load.data.data].reverse() : null;
  const byID = new Map(list?.map((m) => [m.id, m]));
  useReading(channel, device, list);
  useEffect(() => { if (list) onMessages?.(list); }, [load.data]);
  const box = useBottom(load.data);

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
  const author = (m) => (m.from_phone ? who.phone : who.channel);
  const toQuote = (m) => m.reply_to &&
    (byID.has(m.reply_to) ? { who: author(byID.get(m.reply_to)), text: excerpt(byID.get(m.reply_to)) } : {});
  const file = (m) => api.blob(`/sandbox/phones/${digits}/media/${encodeURIComponent(m.message_id)}`, { channel });
  const lastOwn = list?.findLast((m) => m.from_phone && m.type === 'text' && !m.deleted)?.body;

  return html`<div class="chat">
    <div class="transcript" role="log" aria-label=${t('transcript', who)} tabindex="0" ref=${box.ref} onScroll=${box.onScroll}>
      ${load.error && !list && html`<${Failed} load=${load} />`}
      ${!list && !load.error && html`<${Loading} rows=${4} />`}
      ${list && load.data.meta.next_cursor && html`<div class="earlier">${step < steps.length - 1
        ? html`<${Button} small onClick=${() => setStep(step + 1)}>${t('earlier')}<//>`
        : html`<a href=${href('/messages', { channel, q: `to:${digits}` })}>${t('allMessages')}</a>`}</div>`}
      ${list?.length === 0 && html`<${Nothing} channel=${channel} device=${device} />`}
      ${list?.flatMap((m, i) => [beginsDay(m, list[i - 1]) && html`<p class="day" key=${`day${m.id}`}>${dayName(m)}</p>`,
        html`<${Bubble} key=${m.message_id} m=${m} own=${m.from_phone} author=${author(m)} quote=${toQuote(m)} file=${file}
          status=${m.status === 'RECEIVED' ? 'DELIVERED' : m.status}
          vote=${!m.from_phone && ((options) => act({ type: 'vote', message_id: m.message_id, options }))} open=${open === m.message_id}
            onOpen=${setOpen}
          onReply=${() => { setReply(m); setOpen(''); }}
            onReact=${(emoji) => act({ type: 'reaction', message_id: m.message_id, reaction: m.reactions.includes(emoji) ? '' : emoji })}
          onDelete=${m.from_phone && (() => act({ type: 'delete', message_id: m.message_id }))}>
            <${Button} small kind="quiet" icon="code" onClick=${() => setInspected(m)}>${t('inspect')}<//><//>`])}
    </div>
    ${box.missed > 0 && html`<button type="button" class="button primary small missed" onClick=${box.toBottom}>
      ${t('newBelow', { n: box.missed })}</button>`}
    <${PhoneComposer} channel=${channel} device=${device} draft=${draft} say=${say} lastOwn=${lastOwn}
      reply=${reply && { who: author(reply), text: excerpt(reply) }} onReplyEnd=${() => setReply(null)} />
    <${Dialog} wide open=${Boolean(inspected)} title=${t('inspect')} onClose=${() => setInspected(null)}>
      ${inspected && html`<${Code} text=${mask(JSON.stringify(byID.get(inspected.id) || inspected, null, 2))} what="JSON" />
        <p><a href=${href('/messages', { channel, open: inspected.message_id })}>${t('inMessages')}</a></p>`}<//>
  </div>`;
}

// The composer of a phone also sends places and files, and records.
function PhoneComposer({ channel, device, say, ...rest }) {
  const [More, setMore] = useState(null);
  const [Recorder, setRecorder] = useState(null);
  const [text, setText] = useState('');
  const other = async () => {
    const { More: dialog } = await import('./phone_more.js'); // seldom wanted
    setMore(() => dialog);
  };
  const record = async () => {
    const { Recorder: row } = await import('./phone_more.js'); // likewise
    setRecorder(() => row);
  };
  const cannot = !device.on_network || !hasRole('support');
  const note = !hasRole('support') ? html`<${NeedsRole} role="support" />` : cannot && html`<${Note} kind="warn">${t('notOnNetwork')}<//>`;
  return html`<${Composer} ...${rest} say=${(message) => say({ type: 'text', message })} cannot=${cannot} note=${note} onText=${setText}
      instead=${Recorder && html`<${Recorder} say=${say} close=${() => setRecorder(null)} />`}
      before=${html`<${IconButton} icon="plus" label=${t('sendOther')} disabled=${cannot} onClick=${other} />`}
      after=${html`<${IconButton} icon="voice" label=${t('record')} disabled=${cannot} data-t="record" onClick=${record} />`} />
    ${More && html`<${More} channel=${channel} device=${device} text=${text} say=${say} close=${() => setMore(null)} />`}`;
}

function Nothing({ channel, device }) {
  const request = { method: 'POST', path: '/api/send-message/text', headers: { 'X-Channel': channel },
    body: { contact_id: mask(device.contact_id), message: t('hello') } };
  return html`<${Empty} title=${t('emptyTitle', { name: mask(device.name || phone(device.number)) })}
    text=${t('emptyText', { number: mask(phone(device.number)) })}>
    ${server.value && html`<${Curl} request=${request} />`}<//>`;
}

// A chat that is open and seen is read, as on a phone in the hand.
function useReading(channel, device, list) {
  const marked = useRef('');
  const read = () => {
    const newest = list?.findLast((m) => !m.from_phone && m.status === 'DELIVERED');
    if (!newest || marked.current === newest.id || document.hidden || device.reads === 'never' || !device.on_network ||
      !hasRole('support')) return;
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
