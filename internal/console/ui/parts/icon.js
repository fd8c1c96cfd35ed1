// Line icons on a grid of 24, from one file of symbols. Each is one path; the colour is the text's.
import { html } from '../view.js';

const symbols = new URL('../icons.svg', import.meta.url);

/** A decorative icon: its text is beside it or in a label. */
export function Icon({ name, size = 18 }) {
  return html`<svg class="icon" width=${size} height=${size} aria-hidden="true"><use href="${symbols}#${name}" /></svg>`;
}
