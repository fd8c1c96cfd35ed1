// A block of code with a copy button.
import { html, classes } from '../view.js';
import { Copy } from './button.js';
import { texts } from '../i18n.js';

const t = texts('core');

/** A block of code. hide: a secret in it that is masked on the screen; the button copies it all the same. */
export function Code({ text, what, hide, wrap }) {
  return html`<div class="code"><pre class=${classes(wrap && 'wrap')} tabindex="0"><code>${hide ? text.replaceAll(hide, '••••••••') : text}
    </code></pre><${Copy} text=${text} what=${what || t('code')} /></div>`;
}
