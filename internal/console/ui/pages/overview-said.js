// What the server says of itself.
import { html } from '../view.js';
import { texts } from '../i18n.js';

const t = texts('overview');

/** A need or a finding, in the words of the server, and what to do about it: a command, or a sentence. */
export function Said({ said: { sentence, remedy } }) {
  const isCommand = /^(parley|chmod) /.test(remedy);
  return html`<bdi>${sentence}</bdi>${remedy && html` ${isCommand ? html`<code>${remedy}</code>` : html`<bdi>${remedy}</bdi>`}`}`;
}

/** What a finding is about: "channel demo". */
export function about({ name }) {
  const [check, ...rest] = name.split(' ');
  return t.has(`check.${check}`) ? [t(`check.${check}`), ...rest].join(' ') : name;
}

export const label = ({ name, label: english }) => (t.has(`act.${name}`) ? t(`act.${name}`) : english);
