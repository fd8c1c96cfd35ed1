// Modal dialogs, on the browser's own <dialog>: it keeps the focus inside and gives it back. The focus begins at
// what has autofocus, else at the button that closes it.
import { html, useRef, useEffect, useState, useId, signal } from '../view.js';
import { IconButton, Button } from './button.js';
import { texts } from '../i18n.js';

const t = texts('core');

export function Dialog({ open, ...rest }) {
  return open ? html`<${Shown} ...${rest} />` : null;
}

function Shown({ title, onClose, foot, children, wide }) {
  const box = useRef();
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => { dialog.close(); before?.focus?.(); };
  }, []);
  // A click on the backdrop is a click on the dialog itself, outside of its only child.
  return html`<dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby=${id}
    onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onMouseDown=${(event) => event.target === box.current && onClose()}>
    <div class="dialog-box">
      <header><h2 id=${id}>${title}</h2><${IconButton} icon="close" label=${t('close')} onClick=${onClose} /></header>
      <div class="dialog-body">${children}</div>
      ${foot && html`<footer class="row end">${foot}</footer>`}
    </div>
  </dialog>`;
}

const question = signal(null);

/**
 * Asks before something that cannot be taken back: await confirm({title, text, action, danger, typed}).
 * typed: a word that must be typed first.
 */
export const confirm = (options) => new Promise((answer) => { question.value = { ...options, answer }; });

export function Questions() {
  const asked = question.value;
  const [words, setWords] = useState('');
  if (!asked) return null;
  const answer = (yes) => { question.value = null; setWords(''); asked.answer(yes); };
  const ready = !asked.typed || words === asked.typed;
  return html`<${Dialog} open title=${asked.title} onClose=${() => answer(false)} foot=${html`
      <${Button} autofocus=${!asked.typed} onClick=${() => answer(false)}>${t('cancel')}<//>
      <${Button} kind=${asked.danger ? 'danger' : 'primary'} disabled=${!ready} onClick=${() => answer(true)}>${asked.action}<//>`}>
    ${asked.text && html`<p>${asked.text}</p>`}
    ${asked.typed && html`<label class="field"><span class="label">${t('typeToConfirm', { word: html`<code>${asked.typed}</code>` })}</span>
      <input value=${words} autofocus autocomplete="off" spellcheck=${false} onInput=${(event) => setWords(event.target.value)}
        onKeyDown=${(event) => event.key === 'Enter' && ready && answer(true)} /></label>`}
  <//>`;
}
