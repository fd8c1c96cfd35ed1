// The status of a message: a shape, a colour and a word, never colour alone.
import { html, classes } from '../view.js';
import { texts, full } from '../i18n.js';

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

/** What a type of event is called; programs know it by the type itself. */
export const eventName = (type) => (t.has(`event.${type}`) ? t(`event.${type}`) : type);
export const EventType = ({ type, class: name = '' }) => html`<span class="event-type">${eventName(type)} <span class="mono muted ${name}">
  ${type}</span></span>`;

export const Badge = ({ tone, children, ...rest }) => html`<span class=${classes('badge', tone)} ...${rest}>${children}</span>`;
