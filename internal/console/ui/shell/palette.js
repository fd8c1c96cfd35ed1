// Find anything by a few letters, and the list of keys. What they show is fetched when they open; the input of the palette is there at
// once, and what is typed into it before counts.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { paletteOpen, helpOpen } from '../state.js';
import { texts } from '../i18n.js';
import { Icon } from '../parts/icon.js';
import { lazy } from '../parts/lazy.js';

const t = texts('core');

export const Results = lazy(() => import('./palette_results.js').then((module) => module.Results), 8);
export const HelpDialog = lazy(() => import('./help.js').then((module) => module.HelpDialog));

export function Palette() {
  return paletteOpen.value ? html`<${Open} />` : null;
}

function Open() {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const box = useRef();
  const keys = useRef({ early: [], press: null }).current;
  const id = useId();
  const close = () => { paletteOpen.value = false; };
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.({ preventScroll: true });
  }, []);
  const onKey = (event) => {
    if (!/^(Arrow(Up|Down)|Enter)$/.test(event.key)) return;
    event.preventDefault();
    if (keys.press) keys.press(event.key); else keys.early.push(event.key);
  };
  return html`<dialog class="palette" ref=${box} aria-label=${t('keys.palette')} onClose=${close}
    onMouseDown=${(event) => event.target === box.current && close()}>
    <div class="dialog-box">
      <label class="palette-input"><${Icon} name="search" /><span class="sr">${t('palette')}</span>
        <input type="text" role="combobox" aria-expanded="true" aria-controls=${id} aria-activedescendant="${id}-${at}"
          autocomplete="off" spellcheck=${false} placeholder=${t('palette')} value=${text}
          onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${onKey} /></label>
      <div class="palette-list" role="listbox" id=${id} aria-label=${t('palette')}>
        <${Results} id=${id} text=${text.trim()} at=${at} onPick=${setAt} run=${(entry) => { close(); entry?.run(); }} keys=${keys} />
      </div>
    </div>
  </dialog>`;
}

export const Help = () => helpOpen.value && html`<${HelpDialog} />`;
