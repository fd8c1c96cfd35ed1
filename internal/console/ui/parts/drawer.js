// A panel at the right for one row of a list. Which one is in the URL, so that it can be sent to somebody.
import { html, useRef, useEffect, useLayoutEffect } from '../view.js';
import { query, setQuery } from '../router.js';
import { useKeys } from '../keys.js';
import { texts } from '../i18n.js';
import { IconButton } from './button.js';

const t = texts('core');

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
