// The rows of a live list, which stay where they are while somebody reads it.
import { useState, useMemo, useRef } from '../view.js';

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
