// Nothing jumps: while somebody reads a list, new rows wait behind a button.
import { html, useState, useEffect, useMemo, useRef } from '../view.js';
import { Icon } from './icon.js';
import { texts } from '../i18n.js';

const t = texts('core');

/**
 * {held, paused, toggle, box}: held while the reader paused, has scrolled, or has the pointer or the focus on the list,
 * whose element takes ...box.
 */
export function useHold() {
  const [paused, setPaused] = useState(false);
  const [away, setAway] = useState(scrollY > 40);
  const [over, setOver] = useState(false);
  const [within, setWithin] = useState(false);
  useEffect(() => {
    const look = () => setAway(scrollY > 40);
    addEventListener('scroll', look, { passive: true });
    return () => removeEventListener('scroll', look);
  }, []);
  return {
    held: paused || away || over || within,
    paused,
    toggle: () => setPaused((was) => !was),
    box: {
      // A finger is on the list only while it moves it, which is scrolling.
      onPointerEnter: (event) => setOver(event.pointerType === 'mouse'),
      onPointerLeave: () => setOver(false),
      onFocusIn: (event) => setWithin(!event.target.closest('.new-rows')), // a button that goes takes the focus with it unseen
      onFocusOut: () => setWithin(false),
    },
  };
}

/** For a list that is loaded again and again: [the rows to show, how many new ones wait, a function that shows them]. */
export function useHeldRows(rows, key, held, about) {
  const shown = useRef({});
  const [turn, setTurn] = useState(0);
  return useMemo(() => {
    const was = shown.current;
    let next = rows;
    if (held && rows && was.rows?.length && was.about === about && was.turn === turn) {
      const now = new Map(rows.map((row) => [key(row), row]));
      const had = new Set(was.rows.map(key));
      // What comes after the last one that is known moves nothing.
      next = [...was.rows.map((row) => now.get(key(row)) || row),
        ...rows.slice(rows.findLastIndex((row) => had.has(key(row))) + 1 || rows.length)];
    }
    shown.current = { rows: next, about, turn };
    const known = new Set(next?.map(key));
    return [next, rows ? rows.findIndex((row) => known.has(key(row))) : 0, () => setTurn((n) => n + 1)];
  }, [rows, held, about, turn]);
}

/** "12 new ↑", over the list, so that nothing moves when it comes. */
export function NewRows({ n, onShow }) {
  const show = () => { scrollTo(0, 0); onShow(); };
  return html`<div class="new-rows">
    ${n > 0 && html`<button type="button" class="button primary small" onClick=${show}>${t('newRows', { n })}
      <${Icon} name="arrowup" size=${14} /></button>`}</div>`;
}
