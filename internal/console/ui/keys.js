// The keyboard: what each key does here, and the list that "?" shows.
import { signal, useEffect, useLayoutEffect, useRef } from './view.js';
import { shortcuts, hasRole } from './state.js';

/** [[keys, what, group], …] of all that is on the page now, for the help. */
export const active = signal([]);

const layers = []; // the newest first: a drawer's Escape comes before the page's

/**
 * useKeys gives keys a meaning while a component is there: [['n', t('new'), fn], ['mod+k', …], ['g m', …]].
 * A fn that returns false leaves the key to others. A fourth value is the role that the key needs.
 */
export function useKeys(all, group = 'page') {
  const list = all.filter(([, , , need]) => !need || hasRole(need));
  const latest = useRef(list);
  latest.current = list;
  // A layer keeps its position when its labels change with the language. Its keys work as soon as it is seen.
  useLayoutEffect(() => {
    const layer = { group, find: (key) => latest.current.find(([name]) => name === key)?.[2], list: () => latest.current };
    layers.unshift(layer);
    return () => { layers.splice(layers.indexOf(layer), 1); publish(); };
  }, []);
  useEffect(publish, [list.map(([name, what]) => name + what).join()]);
}

function publish() {
  active.value = layers.flatMap((layer) => layer.list().filter(([, what]) => what).map(([name, what]) => [name, what, layer.group]));
}

const typingIn = (element) =>
  element?.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(element?.tagName) &&
    !/^(checkbox|radio|button|range)$/.test(element.type));

let prefix = '';
let prefixAt = 0;

function named(event) {
  const mod = event.ctrlKey || event.metaKey ? 'mod+' : '';
  const key = event.key === ' ' ? 'Space' : event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return mod + (mod ? key.toLowerCase() : key);
}

addEventListener('keydown', (event) => {
  if (event.isComposing || event.altKey || event.defaultPrevented) return;
  const name = named(event);
  const single = !name.startsWith('mod+') && !/^(Escape|Arrow|Enter$)/.test(name);
  if (typingIn(event.target) && (single || /^(Arrow|Enter$)/.test(name))) return;
  if (single && !shortcuts.value) return;
  // Enter and Space on a button or a link are theirs.
  if (/^(Enter|Space)$/.test(name) && event.target.closest?.('button,a,summary,[role=option]')) return;
  // In a modal dialog only the dialog's own keys count.
  const modal = document.querySelector('dialog:modal');
  const sequence = prefix && Date.now() - prefixAt < 1500 ? `${prefix} ${name}` : '';
  prefix = '';
  // After "g", "g k" wins over the table's own "k".
  for (const key of [sequence, name].filter(Boolean)) {
    for (const layer of layers) {
      const fn = (!modal || layer.group === 'dialog') && layer.find(key);
      if (fn && fn(event) !== false) { event.preventDefault(); return; }
    }
  }
  if (name === 'g' && !modal) { prefix = name; prefixAt = Date.now(); }
});

/** How a key is written on this machine. */
export const keyName = (key) => key
  .replace('mod+', /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ ' : 'Ctrl ')
  .replace('Escape', 'Esc').replace(/\b[a-z]$/, (c) => (key.includes('mod') ? c.toUpperCase() : c));
