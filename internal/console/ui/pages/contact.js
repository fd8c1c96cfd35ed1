// What all channels know of one contact: its conversations, one-time passwords, failures and history.
import { html } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { href } from '../router.js';
import { texts } from '../i18n.js';
import { Card, Empty, Failed, Head, Loading } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Table } from '../parts/table.js';
import { Badge, Tick, whyFailed } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { kindName } from '../parts/bubble.js';
import { toLine } from '../state.js';
import { Body, mask, number, phone } from '../parts/who.js';

const t = texts('contact');
const core = texts('core');

const toAddress = (channel, id, more) => href(`/conversations/${encodeURIComponent(channel)}/${encodeURIComponent(id)}`,
  { channel: null, ...more });

export default function Page({ route: { params } }) {
  const digits = number(params.contact);
  const load = useLoad(() => api.get(`/manage/contacts/${encodeURIComponent(params.contact)}`), [params.contact]);
  const recent = useLoad(() => api.get('/manage/messages', { query: { contact: digits, limit: 20 } }), [digits]);
  const failed = useLoad(() => api.get('/manage/messages', { query: { contact: digits, status: 'FAILED', limit: 20 } }), [digits]);
  useEvents(['message.', 'otp.'], (events) => {
    if (!events.some((event) => number(event.data.contact_id) === digits)) return;
    for (const one of [load, recent, failed]) one.reload();
  });
  const contact = load.data?.data;
  const shown = mask(phone(digits));
  if (load.error && !contact) {
    return html`<${Head} title=${shown} back=${href('/conversations')} />${load.error.status === 404
      ? html`<${Empty} icon="user" title=${t('unknown')} text=${t('unknownText')} />` : html`<${Failed} load=${load} />`}`;
  }
  if (!contact || [recent, failed].some((one) => !one.data && !one.error)) return html`<${Head} title=${shown} lead=${'\u00a0'}
    back=${href('/conversations')} /><${Loading} rows=${6} />`;
  return html`
    <${Head} title=${mask(contact.name) || shown} back=${href('/conversations')} lead=${lead(contact, failed.data?.data)}
      actions=${html`<${Copy} text=${`+${digits}`} what=${t('number')}>${shown}<//>
        ${contact.chats[0] && html`<${Button} kind="primary" icon="conversations"
          href=${toAddress(contact.chats[0].channel, contact.chats[0].id)}>${t('open')}<//>`}`} />
    <${Card} title=${t('channels')}><${Table} label=${t('channels')} rows=${contact.chats} rowKey=${(chat) => chat.channel}
      rowHref=${(chat) => toAddress(chat.channel, chat.id)} columns=${chatColumns}
      empty=${html`<p class="muted">${t('noChats')}</p>`} /><//>
    <${Card} title=${t('codes')}><${Table} label=${t('codes')} rows=${contact.otps} rowKey=${(otp) => otp.id} columns=${otpColumns}
      empty=${html`<p class="muted">${t('noCodes')}</p>`} /><//>
    <${Card} title=${t('failures')}><${Messages} label=${t('failures')} load=${failed} empty=${t('noFailures')} why /><//>
    <${Card} title=${t('history')}
      actions=${html`<a href=${href('/messages', { q: digits ? `to:${digits}` : '', channel: null })}>${t('allMessages')}</a>`}>
      <${Messages} label=${t('history')} load=${recent} empty=${t('noHistory')} /><//>`;
}

function lead(contact, failed) {
  const n = contact.chats.length;
  const last = contact.chats[0]?.last.timestamp;
  return html`${t('lead', { n })} ${last && t('lastAt', { time: html`<${Time} at=${last} ago />` })} ${failed?.length > 0 &&
    t('someFailed', { n: failed.length })}`;
}

const chatColumns = [
  { id: 'channel', get label() { return core('page.channel'); },
    cell: (chat) => html`${chat.channel}${chat.archived && html` <${Badge}>${t('archived')}<//>`}`, card: 'title' },
  { id: 'last', get label() { return t('last'); }, cell: (chat) => (toLine(chat.last) ? html`<${Body} text=${toLine(chat.last)} />`
    : kindName(chat.last.type)), card: 'text', class: 'url-cell' },
  { id: 'unread', get label() { return t('unread'); },
    cell: (chat) => (chat.unread ? html`<span class="unread">${chat.unread > 9 ? '9+' : chat.unread}</span>` : ''), card: 'status' },
  { id: 'messages', get label() { return t('messages'); }, cell: (chat) => chat.messages, align: 'end', card: 'meta' },
  { id: 'at', get label() { return core('time'); }, cell: (chat) => html`<${Time} at=${chat.last.timestamp} />`, card: 'when' },
];

const tones = { APPROVED: 'good', INVALID: 'bad', EXPIRED: 'warn', LOCKED: 'bad' };

const otpColumns = [
  { id: 'kind', get label() { return t('kind'); }, cell: (otp) => t(`kind.${otp.kind}`), card: 'title' },
  { id: 'channel', get label() { return core('page.channel'); }, cell: (otp) => otp.channel, card: 'meta' },
  { id: 'status', get label() { return t('status'); }, cell: (otp) => html`<${Badge} tone=${tones[otp.status]}>${t(`otp.${otp.status}`)}
    <//>`, card: 'status' },
  { id: 'attempts', get label() { return t('wrong'); }, cell: (otp) => otp.attempts, align: 'end' },
  { id: 'at', get label() { return t('requested'); }, cell: (otp) => html`<${Time} at=${otp.created_at} />`, card: 'when' },
  { id: 'ended', get label() { return t('ended'); }, cell: (otp) => html`<${Time} at=${otp.ended_at} />` },
];

function Messages({ label, load, empty, why }) {
  return html`<${Table} label=${label} load=${load} rows=${load.data?.data} rowKey=${(m) => `${m.channel}.${m.message_id}`}
    empty=${html`<p class="muted">${empty}</p>`}
    rowHref=${(m) => toAddress(m.channel, m.group_id || m.contact_id, { message: m.id })} columns=${[
      { id: 'time', label: core('time'), cell: (m) => html`<${Time} at=${m.timestamp} />`, card: 'when' },
      { id: 'channel', label: core('page.channel'), cell: (m) => m.channel, card: 'meta' },
      { id: 'text', label: t('last'), cell: (m) => (toLine(m) ? html`<${Body} text=${toLine(m)} />` : kindName(m.type)), card: 'text',
        class: 'url-cell' },
      { id: 'status', label: why ? t('reason') : t('status'), cell: (m) => html`<${Tick} status=${m.status} at=${m.updated_at} />
        ${why && html` <span class="why clip" title=${whyFailed(m.error)}><bdi>${whyFailed(m.error)}</bdi></span>`}`, card: 'status' },
    ]} />`;
}
