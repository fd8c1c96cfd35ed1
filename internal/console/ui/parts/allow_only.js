// Whom a channel may write to: the numbers that its form lists, or everybody.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Field } from './form.js';

const t = texts('channel');

/** The numbers in a text, with any separators. */
export const numbers = (text) => text.split(/[\n,;]+/).map((line) => line.trim()).filter(Boolean);

/** Whom the channel may write to. A list without numbers would mean everybody, so it is refused here. */
export function WhoMay({ form, name, ...rest }) {
  return html`
    <${Field} form=${form} name="who" type="radio" label=${t('who')} options=${[['only', t('who.only')], ['all', t('who.all')]]} />
    ${form.values.who === 'only' && html`<${Field} form=${form} name=${name} type="textarea" label=${t('numbers')} hint=${t('numbersHint')}
      placeholder="+62 812-3456-7890" inputmode="tel" class="mono" ...${rest} />`}`;
}

export function requireNumbers(values, name) {
  if (values.who === 'only' && !numbers(values[name]).length) throw Object.assign(new Error(t('noNumbers')),
    { errors: { [name]: [t('noNumbers')] } });
}
