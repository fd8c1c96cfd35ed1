// What happened to one request, step by step, from what the server tells.
import { html, useState, useRef } from '../view.js';
import { api } from '../api.js';
import { useEvents } from '../live.js';
import { duration, clock, texts } from '../i18n.js';
import { number } from '../parts/who.js';
import { Card } from '../parts/card.js';
import { Icon } from '../parts/icon.js';

const t = texts('otp');

const look = [100, 200, 300, 500, 500, 1000, 1000, 2000, 3000, 5000]; // when to look whether a callback was taken

/**
 * {run, steps, outcomes, begin(run), add(step), note(outcome)}: the request that is told of, what happened to it, and what
 * came of trying to make it fail. run is {kind, contact, answer, callback, prompt, ended}.
 */
export function useStory(channel) {
  const [run, setRun] = useState(null);
  const [steps, setSteps] = useState([]);
  const [outcomes, setOutcomes] = useState([]);
  const now = useRef();
  now.current = run;
  const ids = useRef({});
  const add = (id, more = {}) => setSteps((was) => (was.some((step) => step.id === id && !more.again) ? was : [...was, { id, at: Date.now(), ...more }]));
  const note = (outcome) => setOutcomes((was) => [{ key: Date.now() + Math.random(), at: Date.now(), ...outcome }, ...was].slice(0, 20));

  useEvents(['message.status', 'message.received', 'otp.'], (events) => {
    for (const { type, channel: of, data, id: event } of events) {
      const { current } = now;
      if (!current || of !== channel) continue;
      if (type.startsWith('otp.')) {
        if (data.id !== current.answer.id) continue;
        const outcome = type.slice(4);
        if (outcome !== 'failed') setRun((was) => ({ ...was, ended: outcome }));
        add(outcome, { reason: data.reason, tone: outcome === 'approved' ? 'good' : 'bad', again: outcome === 'failed' });
        if (current.callback && outcome !== 'expired') callbackOf(event, add, () => now.current === current || now.current?.answer === current.answer);
      } else if (number(data.contact_id) === number(current.contact)) {
        if (type === 'message.received') { if (current.kind === 'link') add('typed'); continue; }
        if (data.from_me !== 'true') continue;
        // The first message to the contact is the code; after a link was answered, it is the answer.
        ids.current.message ||= data.id;
        if (current.kind === 'code' && ids.current.message === data.id && data.status !== 'PENDING') add(data.status.toLowerCase(), { reason: data.error?.message, tone: data.status === 'FAILED' ? 'bad' : '' });
        if (current.kind === 'link' && data.status === 'SENT') add('answered', { again: true });
      }
    }
  });
  return {
    run, steps, outcomes, add, note,
    begin(next) {
      ids.current = {};
      now.current = next;
      setRun(next);
      setSteps([{ id: next.kind === 'code' ? 'requested' : 'created', at: Date.now() }]);
      setOutcomes([]);
    },
    end: (ended) => setRun((was) => ({ ...was, ended })),
  };
}

// A callback is told of by nobody: it is looked for a few times, more and more seldom.
async function callbackOf(event, add, wanted) {
  for (const pause of look) {
    await new Promise((done) => { setTimeout(done, pause); });
    if (!wanted()) return;
    const { data } = await api.get('/manage/deliveries', { query: { event_id: event } });
    const told = data.find((row) => !row.webhook && row.tried_at);
    if (!told) continue;
    add('callback', { reason: told.code ? `HTTP ${told.code}` : told.problem, took: told.took_ms, tone: told.state === 'delivered' ? 'good' : 'bad', again: true });
    return;
  }
}

const icons = { good: 'good', bad: 'bad' };

export function Story({ story }) {
  const { steps } = story;
  if (!steps.length) return null;
  const [{ at: begun }] = steps;
  return html`<${Card} title=${t('story')} data-t="story"><ol class="story" aria-live="polite">
    ${steps.map((step, i) => html`<li key=${i} class=${step.tone || ''} data-step=${step.id}>
      <${Icon} name=${icons[step.tone] || 'check'} size=${16} /><b>${t(`step.${step.id}`)}</b>
      <span class="muted mono-num">${i ? duration(step.at - begun) : clock(step.at)}</span>
      ${step.reason && html`<span class="muted"><bdi>${t.has(`reason.${step.reason}`) ? t(`reason.${step.reason}`) : step.reason}</bdi>${step.took != null && ` · ${duration(step.took)}`}</span>`}
    </li>`)}</ol><//>`;
}
