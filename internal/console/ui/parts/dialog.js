// Modal dialogs, on the browser's own <dialog>: it keeps the focus inside and gives it back. The focus begins at
// what has autofocus, else at the button that closes it.
import { html, useRef, useEffect, useState, useId, signal, useLayoutEffect } from '../view.js';
import { IconButton, Button } from './button.js';
import { texts } from '../i18n.js';
import { query, setQuery } from '../router.js';
import { useKeys } from '../keys.js';

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

// A panel at the right for one row of a list. Which one is in the URL, so that it can be sent to somebody.

/**
 * useDrawer binds a list to ?open=. key(row) is its id; row is undefined where the list does not have it.
 * Given to a Table as drawer, previous and next go by the order that the table shows.
 */
export function useDrawer(rows, key, name = 'open') {
  const id = query.value[name] || '';
  const list = rows || [];
  const order = useRef(null);
  // The table tells its order while it is drawn, which is after this: where that is of before the rows were there,
  // the list's own will do, and what is pressed looks again.
  const beside = (by) => {
    const keys = [order.current || [], list.map(key)].map((all) => all.map(String)).find((all) => all.includes(id));
    return keys?.[keys.indexOf(id) + by];
  };
  const step = (by) => (beside(by) === undefined ? null : () => setQuery({ [name]: beside(by) ?? id }, { replace: true }));
  return {
    id,
    order,
    row: list.find((row) => String(key(row)) === id),
    at: (value) => ({ [name]: value }),
    open: (value) => setQuery({ [name]: value }),
    close: () => setQuery({ [name]: null }),
    previous: step(-1),
    next: step(1),
  };
}

export function Drawer({ drawer, title, actions, children }) {
  if (!drawer.id) return null;
  return html`<${Open} drawer=${drawer} title=${title} actions=${actions}>${children}<//>`;
}

function Open({ drawer, title, actions, children }) {
  const box = useRef();
  // Focus goes into the drawer when it opens, and back to where it was when it closes.
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.focus();
    return () => { if (box.current === null || box.current.contains(document.activeElement) ||
      document.activeElement === document.body) before?.focus?.({ preventScroll: true }); };
  }, []);
  useEffect(() => { box.current.querySelector('.drawer-body').scrollTop = 0; }, [drawer.id]);
  useKeys([
    ['Escape', t('close'), drawer.close],
    ['[', t('keys.previous'), () => drawer.previous?.()],
    [']', t('keys.next'), () => drawer.next?.()],
  ], 'drawer');
  return html`<div class="drawer" role="dialog" aria-label=${typeof title === 'string' ? title : t('details')} tabindex="-1" ref=${box}
    data-t="drawer">
    <header>
      <h2><bdi>${title}</bdi></h2>
      <div class="row">${actions}
        <${IconButton} icon="up" label=${t('keys.previous')} disabled=${!drawer.previous} onClick=${drawer.previous} />
        <${IconButton} icon="down" label=${t('keys.next')} disabled=${!drawer.next} onClick=${drawer.next} />
        <${IconButton} icon="close" label=${t('close')} onClick=${drawer.close} />
      </div>
    </header>
    <div class="drawer-body">${children}</div>
  </div>`;
}
