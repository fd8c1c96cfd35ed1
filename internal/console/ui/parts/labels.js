// The labels of a channel: shown, and edited as words with commas between them.
import { html } from '../view.js';
import { Field } from './form.js';
import { texts } from '../i18n.js';

const t = texts('core');

/** most: labels that there is room for; the others are counted. */
export const Labels = ({ of: labels, most = Infinity }) =>
  (labels?.length ? html`<span class="labels" title=${labels.join(', ')}>
    ${labels.slice(0, most).map((label) => html`<span key=${label} class="label-chip clip"><bdi>${label}</bdi></span>`)}
    ${labels.length > most && html`<span class="muted">+${labels.length - most}</span>`}</span>` : '');

/** The labels in a text. */
export const toLabels = (text) => text.split(',').map((one) => one.trim()).filter(Boolean);

/** A field for labels. Errors of the server name one label; they are shown at the field. */
export function LabelsField({ form }) {
  const mine = Object.entries(form.errors).filter(([path]) => /^labels(\.|$)/.test(path));
  for (const [path] of mine) form.paths.add(path); // they are shown here
  const wrong = mine.flatMap(([, list]) => list);
  const own = { ...form, errors: wrong.length ? { ...form.errors, labels: wrong } : form.errors };
  return html`<${Field} form=${own} name="labels" label=${t('labels')} hint=${t('labelsHint')} autocomplete="off" spellcheck=${false} />`;
}
