// "As code": the request behind a form as a program, which is written when somebody asks for it.
import { html, useState } from '../view.js';
import { Button } from './button.js';
import { Dialog } from './dialog.js';
import { lazy } from './lazy.js';
import { texts } from '../i18n.js';

const t = texts('core');

/** An example request, for a list that is empty. */
export const Curl = lazy(() => import('./snippet.js').then((module) => module.Curl));
const CodeTabs = lazy(() => import('./snippet.js').then((module) => module.CodeTabs), 8);

/** A button that opens the request {method, path, headers, body} as a program. path begins with /api. */
export function AsCode({ request, small, label }) {
  const [open, setOpen] = useState(false);
  return html`<${Button} icon="code" small=${small} ...${CodeTabs.near} onClick=${() => setOpen(true)}>${label || t('asCode')}<//>
    <${Dialog} wide open=${open} title=${t('asCode')} onClose=${() => setOpen(false)}><${CodeTabs} request=${request} /><//>`;
}
