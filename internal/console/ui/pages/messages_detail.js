// One message: its timeline, the bubble on the phone, why it failed, and its webhook deliveries.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { href, setQuery } from '../router.js';
import { channelBy } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, duration, bytes } from '../i18n.js';
import { Facts, Loading, Failed } from '../parts/card.js';
import { Button, Copy, copyText } from '../parts/button.js';
import { confirm } from '../parts/dialog.js';
import { AsCode } from '../parts/as_code.js';
import { Result } from '../parts/delivery.js';
import { lazy } from '../parts/lazy.js';
import { Tick, eventName } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { Who, number, phone, mask } from '../parts/who.js';
import { toast } from '../parts/toast.js';
import { Bubble, asBubble, excerpt, kindName, senderName } from '../parts/bubble.js';

const t = texts('messages');
const core = texts('core');
const Why = lazy(() => import('./messages_why.js').then((module) => module.Why), 3);
const Code = lazy(() => import('../parts/code.js').then((module) => module.Code), 8);

/** What would send a message again; null where that is not known: files are not sent twice, codes never. */
export function toRequest(m) {
  const to = m.group_id ? { group_id: m.group_id } : { contact_id: m.contact_id };
  const more = m.reply_to ? { reply_to: m.reply_to } : {};
  const body = m.otp || !m.outgoing ? null
    : m.type === 'text' && m.body ? { ...to, message: m.body, ...more }
      : m.location ? { ...to, latitude: m.location.latitude, longitude: m.location.longitude,
        ...(m.location.title && { title: m.location.title }), ...more }
        : m.poll && { ...to, title: m.poll.title, options: m.poll.options.map((option) => option.name),
          is_multiple_answer: m.poll.multiple, ...more };
  return body ? { method: 'POST', path: `/api/send-message/${m.type}`, headers: { 'X-Channel': m.channel }, body } : null;
}

/** id is the channel, a dot and the message's id. */
export function Detail({ id, open }) {
  const [channel, messageID] = [id.slice(0, id.indexOf('.')), id.slice(id.indexOf('.') + 1)];
  const path = `/manage/messages/${encodeURIComponent(messageID)}`;
  const load = useLoad(() => api.get(path, { query: { channel } }));
  const m = load.data?.data;
  useEvents(['message.', 'poll.'], (events) => {
    if (events.some((event) => event.channel === channel && event.data.message_id === messageID)) load.reload();
  });
  useKeys([
    ['y', t('copyID'), () => copyText(messageID, t('id'))],
    ['r', t('reply'), () => m && !m.group_id && reply(m), 'support'],
  ], 'drawer');
  if (load.error && !m) return html`<${Failed} load=${load} />`;
  if (!m) return html`<${Loading} rows=${6} />`;
  return html`
    <p class="answer">${sentence(m)}</p>
    <${Actions} m=${m} path=${path} open=${open} />
    ${m.status === 'FAILED' && html`<${Why} m=${m} />`}
    <section><h3>${t(m.otp ? 'seenHidden' : isOut(m) ? 'seenAs' : 'wouldSee')}</h3><${Seen} m=${m} path=${path} /></section>
    <section><h3>${t('timeline')}</h3><${Line} m=${m} /></section>
    <section><${Facts} rows=${facts(m)} /></section>
    <section><h3>${t('deliveries')}</h3><${Caused} m=${m} /></section>
    <${Raw} m=${m} />`;
}

function Raw({ m }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.target.open)} ...${Code.near}><summary>JSON</summary>
    ${open && html`<${Code} text=${mask(JSON.stringify(m, null, 2))} what="JSON" />`}</details>`;
}

const reply = (m) => setQuery({ send: '1', to: number(m.contact_id), from: m.channel, reply: m.id });

function sentence(m) {
  const [first] = m.timeline;
  const took = duration(Math.max(0, Date.parse(m.timeline.at(-1).at) - Date.parse(first.at)));
  const who = html`<${Who} number=${m.contact_id || m.group_id} name=${m.contact_name || m.group_name} both />`;
  const status = m.outgoing || m.status === 'DELETED' ? m.status : 'RECEIVED';
  return t(`is.${status}`, { who, took, channel: m.channel });
}

function Actions({ m, path, open }) {
  const request = toRequest(m);
  const channel = channelBy(m.channel);
  const again = async () => {
    if (!channel?.simulated &&
      !await confirm({ title: t('again'), text: t('againReal', { to: phone(m.contact_id || m.group_id) }), action: t('again') })) return;
    const { data } = await api.post(request.path.slice(4), request.body, { channel: m.channel });
    toast(t('sentAgain'), { kind: 'good', action: { label: core('keys.open'), run: () => open(`${m.channel}.${data.message_id}`) } });
  };
  return html`<div class="row">
    <${Copy} small text=${m.message_id} what=${t('id')}>${t('copyID')}<//>
    <${AsCode} small request=${request || { path: `/api${path}?channel=${m.channel}` }} />
    ${request && html`<${Button} need="support" small icon="refresh" onClick=${again}>${t('again')}<//>`}
    ${!m.group_id && html`<${Button} need="support" small icon="reply" onClick=${() => reply(m)}>${t('reply')}<//>`}
    <${Button} small icon="conversations"
      href=${href(`/conversations/${encodeURIComponent(m.channel)}/${encodeURIComponent(m.group_id || m.contact_id)}`, { message: m.id })}>
      ${t('chat')}<//>
  </div>`;
}

// What failed or waits is on no phone.
const isOut = (m) => m.status !== 'FAILED' && m.status !== 'PENDING';

/** The bubble on the other phone. What it answers is looked up. */
function Seen({ m, path }) {
  const quoted = useLoad(async () => m.reply_to &&
    (await api.get(`/manage/messages/${encodeURIComponent(m.reply_to)}`, { query: { channel: m.channel } }).catch(() => null))?.data,
    [m.reply_to]).data;
  const file = () => api.blob(`${path}/media`, { query: { channel: m.channel } });
  const shown = asBubble(m);
  const author = (one) => (one.outgoing ? m.channel : mask(m.contact_name || phone(m.contact_id)));
  const quote = m.reply_to && (quoted ? { who: author(quoted), text: excerpt(asBubble(quoted)) } : {});
  return html`<div class="as-seen">
    <${Bubble} m=${{ ...shown, votes: m.poll?.options.filter((option) => option.votes).map((option) => option.name) || [] }}
    own=${!m.outgoing} author=${author(m)} status=${m.status === 'RECEIVED' ? 'DELIVERED' : m.status} quote=${quote} file=${file} /></div>`;
}

function Line({ m }) {
  const begun = Date.parse(m.timeline[0].at);
  return html`<ol class="line">${m.timeline.map((step, i) => html`<li key=${i}>
    ${step.edited ? html`<span>${core('edited')}</span>` : html`<${Tick} status=${step.status} at=${step.at} />`}<${Time} at=${step.at} />
    <span class="muted mono-num">${i > 0 && `+ ${duration(Math.max(0, Date.parse(step.at) - Date.parse(m.timeline[i - 1].at)))}`}
      ${i > 1 && ` · ${t('inAll', { time: duration(Math.max(0, Date.parse(step.at) - begun)) })}`}</span></li>`)}</ol>`;
}

const Mono = ({ text, what }) => html`<span class="mono">${text}</span> <${Copy} text=${text} what=${what} />`;

const facts = (m) => [
  [t('id'), html`<span class="mono">${mask(m.message_id)}</span> <${Copy} text=${m.message_id} what=${t('id')} />`],
  [core('page.channel'), html`<a href=${href(`/channels/${m.channel}`)}>${m.channel}</a>`],
  [t('contact'), m.contact_id && html`<${Who} number=${m.contact_id} name=${m.contact_name} both />`],
  [t('group'), m.group_id && html`<span class="mono">${m.group_id}</span>`],
  [t('type'), m.otp ? `${kindName(m.type)} · OTP` : kindName(m.type)],
  [t('replyTo'), m.reply_to && html`<a class="mono" href=${href('/messages', { open: `${m.channel}.${m.reply_to}` })}>${m.reply_to}</a>`],
  [t('file'), m.media && html`<bdi>${mask(m.media.filename || m.type)}</bdi> <span class="muted">
    ${m.media.mimetype} · ${bytes(m.media.size)}</span>`],
  [t('contacts'), m.contacts?.length > 0 &&
    m.contacts.map((card) => html`<bdi>${mask(card.name)}</bdi> <${Copy} text=${card.vcard} what=${t('contacts')} /> `)],
  [t('sentBy'), m.sent_by && t(`sentBy.${m.sent_by.kind}`, { name: html`<bdi>${senderName(m.sent_by)}</bdi>` })],
  [t('request'), m.request_id && html`<${Mono} text=${m.request_id} what=${t('request')} />`],
  [t('key'), m.idempotency_key && html`<${Mono} text=${m.idempotency_key} what=${t('key')} />`],
];

function Caused({ m }) {
  if (!m.deliveries.length) return html`<p class="muted">${t('noDeliveries')}</p>`;
  return html`<ul class="caused">${m.deliveries.map((d) => html`<li key=${d.id}>
    <a href=${href('/webhooks/deliveries', { open: d.id })}>${eventName(d.type)}</a> <span class="muted clip">${d.url}</span>
      <${Result} d=${d} /></li>`)}</ul>`;
}
