// Which rows of a table are selected: one by one, all that are shown, or with Shift all between two.
import { useRef } from '../view.js';

/** picked: a signal of a Set of keys, or undefined if nothing can be selected. The result is for a Table. */
export function useSelection(picked) {
  const shown = useRef({ keys: [], last: null }).current; // keys: of the rows of the table, in their order
  if (!picked) return undefined;
  const choose = (change) => {
    const next = new Set(picked.value); // it may have changed since it was drawn
    change(next);
    picked.value = next;
  };
  const hasAll = () => shown.keys.length > 0 && shown.keys.every((key) => picked.value.has(key));
  return {
    set keys(keys) { shown.keys = keys; },
    has: (key) => picked.value.has(key),
    get some() { return picked.value.size > 0; },
    get all() { return hasAll(); },
    toggle: (key) => choose((next) => {
      if (!next.delete(key)) next.add(key);
      shown.last = key;
    }),
    toggleAll() {
      const all = hasAll();
      choose((next) => shown.keys.forEach((key) => (all ? next.delete(key) : next.add(key))));
    },
    range: (key) => choose((next) => {
      const [a, b] = [shown.keys.indexOf(shown.last ?? key), shown.keys.indexOf(key)].sort((x, y) => x - y);
      shown.keys.slice(Math.max(0, a), b + 1).forEach((one) => next.add(one));
      shown.last = key;
      getSelection().removeAllRanges(); // Shift+click also marks text
    }),
  };
}
