// The labels of a channel. They are edited as words with commas between them.
import { html } from '../view.js';

/** most: labels that there is room for; the others are counted. */
export const Labels = ({ of: labels, most = Infinity }) =>
  (labels?.length ? html`<span class="labels" title=${labels.join(', ')}>
    ${labels.slice(0, most).map((label) => html`<span key=${label} class="label-chip clip"><bdi>${label}</bdi></span>`)}
    ${labels.length > most && html`<span class="muted">+${labels.length - most}</span>`}</span>` : '');

/** The labels in a text. */
export const toLabels = (text) => text.split(',').map((one) => one.trim()).filter(Boolean);
