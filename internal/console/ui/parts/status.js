// The status of a message or a channel: a shape, a colour and a word, never colour alone.
import { html, classes } from '../view.js';
import { texts, full } from '../i18n.js';
import { Icon } from './icon.js';
import { Time, Said } from './time.js';

const t = texts('core');
const why = texts('messages');

const one = 'M3 9l4 4 7-9';
const ticks = {
  PENDING: 'M9 2a7 7 0 1 1 0 14A7 7 0 0 1 9 2zM9 5v4l3 2',
  SENT: one,
  DELIVERED: 'M1 9l4 4 7-9M8 12l1 1 7-9',
  READ: 'M1 9l4 4 7-9M8 12l1 1 7-9',
  PLAYED: 'M5 3l9 6-9 6z',
  FAILED: 'M9 2v9M9 15h.01',
  DELETED: 'M7 3h10v12H7L1 9zM9 6l5 6M14 6l-5 6',
  RECEIVED: 'M9 3v9M4 8l5 5 5-5',
};
const tones = { READ: 'read', PLAYED: 'read', FAILED: 'bad', DELETED: 'off', PENDING: 'off', RECEIVED: 'in' };

/** A message's status. Its word is there for screen readers, and for the eye unless word is false. */
export function Tick({ status, at, word = true }) {
  const name = t(`status.${status}`);
  return html`<span class="tick ${tones[status] || ''}" data-status=${status} title=${at ? `${name} · ${full(at)}` : name}>
    <svg class="icon" width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path d=${ticks[status]} /></svg>
    <span class=${word ? '' : 'sr'}>${name}</span>
  </span>`;
}

/** Why a message failed: by its code, or in the words of the network. */
export const whyFailed = ({ code = 'refused', message } = {}) => (message && (code === 'refused' || !why.has(`why.${code}`)) ? message
  : why(`why.${code}`));

export const channelTone = {
  WORKING: 'good', STARTING: 'wait', RECONNECTING: 'warn', SCAN_QR_CODE: 'warn', LOGGED_OUT: 'bad', FAILED: 'bad', STOPPED: 'off',
};
const channelIcon = { good: 'good', wait: 'clock', warn: 'refresh', bad: 'bad', off: 'stop' };

/** How much a channel wants attention: the first number in a sort. */
export const urgency = { FAILED: 0, LOGGED_OUT: 1, SCAN_QR_CODE: 2, RECONNECTING: 3, STARTING: 4, WORKING: 5, STOPPED: 6 };

export function ChannelStatus({ status, reason }) {
  const tone = channelTone[status];
  return html`<span class="state ${tone}" data-status=${status} title=${reasonText(reason) || undefined}>
    <${Icon} name=${status === 'SCAN_QR_CODE' ? 'qr' : channelIcon[tone]} size=${16} />${t(`channel.${status}`)}
  </span>`;
}

// The reasons that a server gives most. Others are shown as they are, in English.
const reasons = {
  'The account was logged out of this channel.': 'loggedOut', 'The channel was logged out. Pair the channel again.': 'loggedOut',
    'The account removed this device. Pair the channel again.': 'removed',
  'No WhatsApp account is linked.': 'unlinked', 'It is waiting for someone to link it on the phone.': 'linking',
  'It was stopped.': 'stopped', 'It was stopped by hand.': 'stopped', 'The server is not running.': 'serverStopped',
  'The network closed the connection.': 'closed',
};

const ban = /^WhatsApp banned the account until (\S+) (\S+) UTC: (.+?)\./;

export const reasonText = (text) => (reasons[text] ? t(`reason.${reasons[text]}`) : text);

/** Why a channel has its status, in the reader's language where it is known. */
export function Reason({ text }) {
  if (!text) return null;
  const banned = text.match(ban);
  if (banned) return html`<span>
    ${t('reason.banned', { time: html`<${Time} at="${banned[1]}T${banned[2]}Z" />`,
      why: html`<bdi lang="en">${banned[3]}</bdi>` })}</span>`;
  return reasons[text] ? html`<span>${reasonText(text)}</span>` : html`<${Said} text=${text} />`;
}

/** What a type of event is called; programs know it by the type itself. */
export const eventName = (type) => (t.has(`event.${type}`) ? t(`event.${type}`) : type);
export const EventType = ({ type, class: name = '' }) => html`<span class="event-type">${eventName(type)} <span class="mono muted ${name}">
  ${type}</span></span>`;

export const Badge = ({ tone, children, ...rest }) => html`<span class=${classes('badge', tone)} ...${rest}>${children}</span>`;
