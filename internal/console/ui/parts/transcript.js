// A list of messages that grows at its end: it stays at the newest, or where the reader is.
import { useState, useEffect, useLayoutEffect, useRef } from '../view.js';
import { useEvents } from '../live.js';
import { texts } from '../i18n.js';

const t = texts('phone');

// Keeps the newest message in view if the reader is at the bottom, else keeps the scroll position.
const atMostEvery = 200; // milliseconds between two loads, however much happens

/** Calls reload(events) at once when something happens that isAbout(event), and again for what happened meanwhile. */
export function useFollow(types, isAbout, reload) {
  const state = useRef({ events: [] }).current;
  useEvents(types, async (all) => {
    const events = all.filter(isAbout);
    if (!events.length) return;
    state.events.push(...events);
    if (state.busy) return;
    state.busy = true;
    while (state.events.length) {
      await reload(state.events.splice(0)).catch(() => {});
      await new Promise((done) => { setTimeout(done, atMostEvery); });
    }
    state.busy = false;
  });
}

/** data.data are the messages, newest first; step changes when earlier ones were asked for. */
export function useBottom(data, step) {
  const ref = useRef();
  const [missed, setMissed] = useState(0);
  const state = useRef({ stuck: true, height: 0, count: 0, last: '' }).current;
  const toBottom = () => { ref.current.scrollTop = ref.current.scrollHeight; setMissed(0); };
  useLayoutEffect(() => {
    const box = ref.current;
    const list = data?.data || [];
    const place = list.findIndex((m) => m.id === state.last);
    const fresh = state.last ? (place < 0 ? list.length : place) : 0;
    if (state.stuck) toBottom();
    else if (state.step !== step) box.scrollTop += box.scrollHeight - state.height;
    else if (fresh) setMissed((was) => was + fresh);
    Object.assign(state, { height: box.scrollHeight, last: list[0]?.id || '', step: data ? step : state.step });
  }, [data]);
  // The room changes too: a window that shrinks, a reply that opens, a picture without a size.
  useEffect(() => {
    const watch = new ResizeObserver(() => { if (state.stuck && ref.current) toBottom(); });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return {
    ref, missed, toBottom,
    follow() { state.stuck = true; },
    leave() { state.stuck = false; },
    onScroll() {
      const { scrollHeight, scrollTop, clientHeight } = ref.current;
      state.stuck = scrollHeight - scrollTop - clientHeight < 40;
      if (state.stuck && missed) setMissed(0);
    },
  };
}

/** Whether a message begins another day, in the time of the reader, than the one before. */
export const beginsDay = (m, before) => !before || new Date(before.timestamp).toDateString() !== new Date(m.timestamp).toDateString();

/** The day of a message, for the line above it. */
export const dayName = (m) => {
  const at = new Date(m.timestamp);
  return at.toDateString() === new Date().toDateString() ? t('today')
    : at.toLocaleDateString(document.documentElement.lang, { dateStyle: 'medium' });
};
