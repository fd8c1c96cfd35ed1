// What the server says of itself, in the reader's language.
import { html } from '../view.js';
import { texts, bytes, duration } from '../i18n.js';
import { Time } from '../parts/time.js';

const t = texts('overview');
const core = texts('core');

// The end of a value's name says what it is.
function written(name, value) {
  if (name === 'status') return core(`channel.${value}`);
  if (name.endsWith('_at')) return html`<${Time} at=${value} />`;
  if (name.endsWith('_ms')) return duration(value);
  if (name.endsWith('_bytes')) return bytes(value);
  return typeof value === 'number' ? value : html`<bdi>${value}</bdi>`;
}

/** A need or a finding, and what to do about it. What has no text here is said as the server does; so is what others gave as the reason. */
export function Said({ said: { case: name, values, sentence, remedy } }) {
  const command = remedy && html` <code>${remedy}</code>`;
  if (!name || !t.has(`case.${name}`)) return html`<bdi>${sentence}</bdi>${command}`;
  const filled = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, written(key, value)]));
  return html`${t(`case.${name}`, { ...filled, n: values.count })}${values.reason && html` <bdi>${values.reason}</bdi>`}${t.has(`remedy.${name}`) ? ` ${t(`remedy.${name}`)}` : command}`;
}

/** What a finding is about: "channel demo". */
export function about({ name }) {
  const [check, ...rest] = name.split(' ');
  return t.has(`check.${check}`) ? [t(`check.${check}`), ...rest].join(' ') : name;
}

export const label = ({ name, label: english }) => (t.has(`act.${name}`) ? t(`act.${name}`) : english);
