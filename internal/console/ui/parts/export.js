// The button that exports what a list shows.
import { html, useState } from '../view.js';
import { texts } from '../i18n.js';
import { Button } from './button.js';
import { lazy } from './lazy.js';

const t = texts('export');
const Dialog = lazy(() => import('./export_dialog.js').then((module) => module.ExportDialog));

/** A button that opens the dialog. what names the rows; query has the filters. */
export function Export({ what, path, query }) {
  const [asked, setAsked] = useState(null);
  return html`<${Button} icon="download" ...${Dialog.near} onClick=${() => setAsked({ ...query })}>${t('export')}<//>
    ${asked && html`<${Dialog} what=${what} path=${path} query=${asked} onClose=${() => setAsked(null)} />`}`;
}
