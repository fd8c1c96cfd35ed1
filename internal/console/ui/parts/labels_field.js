// A field of a form for the labels of a channel.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Field } from './form.js';

const t = texts('core');

/** Errors of the server name one label; they are shown at the field. */
export function LabelsField({ form }) {
  const mine = Object.entries(form.errors).filter(([path]) => /^labels(\.|$)/.test(path));
  for (const [path] of mine) form.paths.add(path); // they are shown here
  const wrong = mine.flatMap(([, list]) => list);
  const own = { ...form, errors: wrong.length ? { ...form.errors, labels: wrong } : form.errors };
  return html`<${Field} form=${own} name="labels" label=${t('labels')} hint=${t('labelsHint')} autocomplete="off" spellcheck=${false} />`;
}
