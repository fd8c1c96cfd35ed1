// The first-run list: six things that show what this is for. They tick themselves when they happen.
import { computed } from './view.js';
import { stored, totals } from './state.js';
import { onEvents } from './live.js';

const done = stored('firstrun', {});

export const hidden = stored('firstrun.hidden', false);

/** Marks a step as done: send, answer, webhook, otp, pair, token. */
export function tick(step) {
  if (!done.value[step]) done.value = { ...done.value, [step]: true };
}

const paired = computed(() => totals.value?.working > 0);

export const steps = computed(() => {
  const links = { send: '/api-recipes', answer: '/phone', webhook: '/webhooks', otp: '/otp', pair: '/channels', token: '/tokens' };
  return Object.entries(links).map(([id, to]) => ({ id, to, done: Boolean(done.value[id] || (id === 'pair' && paired.value)) }));
});

/** What the last 24 hours show was done, perhaps by a program and before this browser came. */
export function tickFrom({ last24h, webhooks, otp }) {
  if (last24h?.sent) tick('send');
  if (last24h?.received) tick('answer');
  if (webhooks?.delivered) tick('webhook');
  if (otp?.approved) tick('otp');
}

export function startChecklist() {
  onEvents(['message.received'], () => tick('answer'));
  onEvents(['otp.approved'], () => tick('otp'));
  onEvents(['message.status'], (events) => { if (events.some((event) => event.data.outgoing)) tick('send'); });
}
