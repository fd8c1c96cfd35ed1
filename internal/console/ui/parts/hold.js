// Nothing jumps: while somebody reads a list, new rows wait behind a button.
import { html, useState, useEffect } from '../view.js';
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

/** "12 new ↑", over the list, so that nothing moves when it comes. */
export function NewRows({ n, onShow }) {
  const show = () => { scrollTo(0, 0); onShow(); };
  return html`<div class="new-rows">
    ${n > 0 && html`<button type="button" class="button primary small" onClick=${show}>${t('newRows', { n })}
      <${Icon} name="arrowup" size=${14} /></button>`}</div>`;
}
