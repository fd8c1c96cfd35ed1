// Shows the notices of parts/toast.js.
import { html, useEffect } from '../view.js';
import { toasts, spoken, toast, drop } from '../parts/toast.js';
import { Icon } from '../parts/icon.js';
import { IconButton } from '../parts/button.js';
import { texts } from '../i18n.js';

const t = texts('core');

export function Toasts() {
  useEffect(() => {
    const failed = ({ reason }) => { if (reason?.status !== undefined) toast(reason.message, { kind: 'bad' }); };
    addEventListener('unhandledrejection', failed);
    return () => removeEventListener('unhandledrejection', failed);
  }, []);
  return html`
    <div class="sr said" role="status" data-t="status">${spoken}</div>
    ${toasts.value.length > 0 && html`<section class="toasts" aria-label=${t('notices')}>
      ${toasts.value.map(({ id, text, kind, action }) => html`
      <div key=${id} class="toast ${kind || ''}">
        ${kind && html`<${Icon} name=${kind} />`}<span>${text}</span>
        ${action && html`<button class="button quiet small" onClick=${() => { drop(id); action.run(); }}>${action.label}</button>`}
        <${IconButton} icon="close" label=${t('close')} onClick=${() => drop(id)} />
      </div>`)}
    </section>`}`;
}
