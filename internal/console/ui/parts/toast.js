// Short notices at the foot of the page, also for screen readers.
import { signal, html, useEffect } from '../view.js';
import { Icon } from './icon.js';
import { IconButton } from './button.js';
import { texts } from '../i18n.js';

const toasts = signal([]);
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

const t = texts('core');

export function Toasts() {
  useEffect(() => {
    const failed = ({ reason }) => { if (reason?.status !== undefined) toast(reason.message, { kind: 'bad' }); };
    addEventListener('unhandledrejection', failed);
    return () => removeEventListener('unhandledrejection', failed);
  }, []);
  return html`
    <div class="sr said" role="status" data-t="status">${spoken}</div>
    ${toasts.value.length > 0 && html`<section class="toasts" aria-label=${t('notices')}>${toasts.value.map(({ id, text, kind, action }) => html`
      <div key=${id} class="toast ${kind || ''}">
        ${kind && html`<${Icon} name=${kind} />`}<span>${text}</span>
        ${action && html`<button class="button quiet small" onClick=${() => { drop(id); action.run(); }}>${action.label}</button>`}
        <${IconButton} icon="close" label=${t('close')} onClick=${() => drop(id)} />
      </div>`)}
    </section>`}`;
}
