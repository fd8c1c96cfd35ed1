// Looks again at deliveries that are about to be attempted: there are no events about them.
import { useEffect, useRef } from '../view.js';

/** How many attempts there are at most: those of a callback end sooner. */
export const toAttempts = (d) => (d.webhook ? 10 : 7);

/** Whether something may have become of a delivery that waits by the next look. */
export const isDue = (d) => d?.state === 'waiting' && (!d.next_at || Date.parse(d.next_at) - Date.now() < 5000);

const looksAtMost = 20; // what waits behind another may wait for days

/** While one is due, look() is called a few times. Returns a function that restarts that. */
export function useSoon(due, data, look) {
  const looks = useRef(0);
  useEffect(() => {
    if (!due || looks.current++ >= looksAtMost) return undefined;
    const timer = setTimeout(look, 700);
    return () => clearTimeout(timer);
  }, [due, data]);
  return () => { looks.current = 0; };
}
