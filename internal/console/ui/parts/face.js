// A contact or group as a circle with an initial.
import { html, classes } from '../view.js';
import { masked } from '../state.js';
import { Icon } from './icon.js';

/** The first character as people see it, which may be made of several; undefined for an empty text. */
export const initial = (text) => [...new Intl.Segmenter().segment(text.trim().slice(0, 40))][0]?.segment.toUpperCase();

const toHue = (id) => [...id].reduce((sum, c) => sum + (Number(c) || 0), 0) % 6;

/** away: undefined where nobody knows whether the phone is online. */
export function Face({ id, name, group, away }) {
  const inner = group ? html`<${Icon} name="group" size=${18} />` : masked.value ? '•' : initial(name) || id.split('@')[0].slice(-2);
  return html`<span class=${classes('face', away === undefined ? 'still' : away && 'away')} data-hue=${toHue(id)} aria-hidden="true">
    ${inner}</span>`;
}
