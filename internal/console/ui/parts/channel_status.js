// The status of a channel, and why it has it: a shape, a colour and a word, never colour alone.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Icon } from './icon.js';
import { Time, Said } from './time.js';

const t = texts('core');

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
