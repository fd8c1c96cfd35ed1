// Short notices at the foot of the page, also for screen readers.
import { signal } from '../view.js';

export const toasts = signal([]);
export const spoken = signal('');
let count = 0;

/** toast(text, {kind: 'good' | 'bad', action: {label, run}}) */
export function toast(text, { kind, action } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-2), { id, text, kind, action }];
  say(text);
  // A failure stays until it is read; with something to do, there is more time.
  if (kind !== 'bad') setTimeout(() => drop(id), action ? 10_000 : 4000);
}

export const drop = (id) => { toasts.value = toasts.value.filter((entry) => entry.id !== id); };

/** For screen readers only. */
export function say(text) {
  spoken.value = '';
  setTimeout(() => { spoken.value = text; }, 50); // the same text again is news only after it was away
}
