// Numbers and texts of people, and the mask that hides them on a shared screen.
import { html } from '../view.js';
import { masked } from '../state.js';

// How long a country code is: 1 and 7 have one digit, these have two, all others three.
const two = /^(2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;

/** The digits of a contact id or of any spelling. */
export const number = (id) => String(id ?? '').split('@')[0].replace(/\D/g, '');

/** +62 812-3456-7890. Ids that are no number stay as they are. */
export function phone(id) {
  const text = String(id ?? '');
  const digits = text.split('@')[0];
  if (!/^\+?\d{7,16}$/.test(digits) || text.endsWith('@g.us') || text.endsWith('@lid')) return text;
  const plain = digits.replace('+', '');
  const code = plain.slice(0, /^[17]/.test(plain) ? 1 : two.test(plain) ? 2 : 3);
  const rest = plain.slice(code.length);
  return `+${code} ${grouped(rest, code).filter(Boolean).join('-')}`;
}

function grouped(rest, code) {
  if (code === '55' && rest.length >= 10) return [`${rest.slice(0, 2)} ${rest.slice(2, -4)}`, rest.slice(-4)];
  if (code === '972' && rest.length === 9) return [rest.slice(0, 2), rest.slice(2, 5), rest.slice(5)];
  if (rest.length <= 7) return [rest.slice(0, 3), rest.slice(3)];
  if (rest.length === 8) return [rest.slice(0, 4), rest.slice(4)];
  if (rest.length === 9) return rest.match(/.../g);
  if (rest.length === 10) return [rest.slice(0, 3), rest.slice(3, 6), rest.slice(6)];
  return [rest.slice(0, 3), ...rest.slice(3).match(/.{1,4}/g)];
}

/** Hides text while the mask is on: letters and digits become dots, the length stays near. */
export const mask = (text) => (masked.value ? String(text).replace(/[\p{L}\p{N}\p{Extended_Pictographic}]/gu, '•') : text);

/** A person: the name with the number on hover, or the number. */
export function Who({ number: id, name, both }) {
  const shown = phone(id);
  const hidden = masked.value ? shown.replace(/\d(?=(\D*\d){3})/g, '•') : shown;
  if (!name) return html`<span class="mono-num" title=${masked.value ? undefined : id}>${hidden}</span>`;
  return html`<span title=${masked.value ? undefined : shown}><bdi>${mask(name)}</bdi>
    ${both && html` <span class="muted mono-num">${hidden}</span>`}</span>`;
}

/** What somebody wrote, as text and nothing else. */
export const Body = ({ text }) => html`<bdi class="body">${mask(text ?? '')}</bdi>`;
