// A list of messages that grows at its end: it stays at the newest, or where the reader is.
import { useState, useEffect, useLayoutEffect, useRef } from '../view.js';
import { useEvents } from '../live.js';
import { texts } from '../i18n.js';

const t = texts('phone');

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

const top = (element) => element.getBoundingClientRect().top;

// The first message in view stays where it is on the screen when others come or go above it.
function inView(box) {
  const one = [...box.querySelectorAll('.bubble')].find((bubble) => bubble.getBoundingClientRect().bottom > top(box));
  return one && { one, at: top(one) };
}

/** Keeps the newest message in view, or what the reader looks at. data.data: newest first. isEnd: there is none after them. */
export function useBottom(data, isEnd = true) {
  const ref = useRef();
  const [missed, setMissed] = useState(0);
  const state = useRef({ stuck: true, last: '' }).current;
  const toBottom = () => { ref.current.scrollTop = ref.current.scrollHeight; setMissed(0); };
  useLayoutEffect(() => {
    const box = ref.current;
    const list = data?.data || [];
    const fresh = state.last ? list.findIndex((m) => m.id === state.last) : 0;
    const { one, at } = state.seen || {};
    if (state.stuck) toBottom();
    else if (one?.isConnected) box.scrollTop += top(one) - at;
    if (!state.stuck && isEnd && fresh > 0) setMissed((was) => was + fresh);
    Object.assign(state, { last: isEnd ? list[0]?.id || '' : '', seen: inView(box) });
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
      if (!ref.current) return; // the list is gone
      const { scrollHeight, scrollTop, clientHeight } = ref.current;
      state.stuck = isEnd && scrollHeight - scrollTop - clientHeight < 40;
      state.seen = inView(ref.current);
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
