// What helps against a finding of the checks.
import { html } from '../view.js';
import { Said } from './time.js';

/** What to do about a finding, in the words of the server: a command, or a sentence. */
export const Remedy = ({ text }) => (/^(parley|chmod) /.test(text) ? html`<code>${text}</code>`
  : html`<${Said} text=${`${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`} />`);
