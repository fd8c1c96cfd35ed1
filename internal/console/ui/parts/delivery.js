// The state of a delivery to a webhook, in words.
import { html } from '../view.js';
import { texts, duration } from '../i18n.js';
import { Badge } from './status.js';

const t = texts('deliveries');

const tones = { delivered: 'good', failed: 'bad', retrying: 'warn' };

/** "200 in 84 ms", "timeout after 10 s", "DNS failed"; of one that was not tried yet that it waits. */
export function outcome({ code, took_ms: took, problem, tried_at: tried }) {
  if (!tried && !code && !problem) return t('untried');
  if (code) return t('answered', { code: String(code), took: duration(took) });
  const word = problem.split(':')[0];
  return t.has(`problem.${word}`) ? t(`problem.${word}`, { took: duration(took) }) : problem;
}

// One that failed and is tried again is not one that only waits for its turn.
const toState = ({ state, attempts }) => (state === 'waiting' && attempts ? 'retrying' : state);

export const Result = ({ d }) => html`<span class="result"><${Badge} tone=${tones[toState(d)]} data-state=${d.state}>
  ${t(`state.${toState(d)}`)}<//> <span class="mono-num">${outcome(d)}</span></span>`;
