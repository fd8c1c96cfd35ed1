// The state of a delivery to a webhook, in words.
import { html, useEffect, useRef } from '../view.js';
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

/** How many attempts there are at most: those of a callback end sooner. */
export const toAttempts = (d) => (d.webhook ? 10 : 7);

/** Whether something may have become of a delivery that waits by the next look. */
export const isDue = (d) => d?.state === 'waiting' && (!d.next_at || Date.parse(d.next_at) - Date.now() < 5000);

const looksAtMost = 20; // what waits behind another may wait for days

/** Deliveries produce no events: while one is due, look() is called a few times. Returns a function that restarts that. */
export function useSoon(due, data, look) {
  const looks = useRef(0);
  useEffect(() => {
    if (!due || looks.current++ >= looksAtMost) return undefined;
    const timer = setTimeout(look, 700);
    return () => clearTimeout(timer);
  }, [due, data]);
  return () => { looks.current = 0; };
}
