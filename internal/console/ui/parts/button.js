// Buttons: one that is busy while its work runs, one that is an icon, one that copies.
import { html, useState, useRef, useEffect, classes } from '../view.js';
import { Icon } from './icon.js';
import { toast } from './toast.js';
import { hasRole } from '../state.js';
import { texts } from '../i18n.js';

const t = texts('core');

/**
 * While the promise of onClick runs the button is busy; a failure becomes a toast. need: the role that may use it; others
 * do not see it.
 */
export function Button({ kind = '', icon, small, busy, disabled, type = 'button', need, onClick, href, children, ...rest }) {
  const [running, run] = useWork(onClick);
  if (need && !hasRole(need)) return null;
  const working = busy || running;
  const name = classes('button', kind, small && 'small', working && 'busy');
  const inner = html`${icon && html`<${Icon} name=${icon} size=${small ? 16 : 18} />`}${children}`;
  if (href) return html`<a class=${name} href=${href} ...${rest}>${inner}</a>`;
  return html`<button class=${name} type=${type} disabled=${disabled} aria-disabled=${working || undefined}
    aria-busy=${working || undefined}
    onClick=${working ? stop : onClick && run} ...${rest}>${inner}</button>`;
}

const stop = (event) => event.preventDefault();

/** Runs work, one at a time: [whether it runs, the function that starts it]. */
export function useWork(work) {
  const [running, set] = useState(false);
  const there = useRef(true);
  useEffect(() => () => { there.current = false; }, []);
  const run = async (event) => {
    const result = work?.(event);
    if (!result?.then) return;
    set(true);
    try { await result; } catch (error) { toast(error.message, { kind: 'bad' }); } finally { if (there.current) set(false); }
  };
  return [running, run];
}

/** A button that is only an icon; label says what it does. */
export function IconButton({ icon, label, pressed, onClick, small, ...rest }) {
  return html`<button class=${classes('icon-button', pressed && 'on', small && 'small')} type="button" aria-label=${label} title=${label}
    aria-pressed=${pressed === undefined ? undefined : String(pressed)} onClick=${onClick} ...${rest}><${Icon} name=${icon} /></button>`;
}

/** Copies text; what names it, in "Copied token". With children it is a button with words. */
export function Copy({ text, what = '', children, ...rest }) {
  const copy = () => copyText(text, what);
  return children
    ? html`<${Button} icon="copy" onClick=${copy} ...${rest}>${children}<//>`
    : html`<${IconButton} small icon="copy" label=${t('copy', { what })} onClick=${copy} ...${rest} />`;
}

export async function copyText(text, what = '') {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain HTTP from another machine there is no clipboard; the old way works everywhere.
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'sr';
    (document.querySelector('dialog:modal') || document.body).append(area);
    const before = document.activeElement;
    area.select();
    document.execCommand('copy');
    area.remove();
    before?.focus();
  }
  toast(t('copied', { what }), { kind: 'good' });
}
