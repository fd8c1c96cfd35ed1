// The live event stream for the pages, and its connection state.
import { signal, batch, useEffect, useRef } from './view.js';
import { follow } from './stream.js';

/** {state: 'connecting' | 'live' | 'reconnecting' | 'signed-out', since, retryAt} */
export const live = signal({ state: 'connecting', since: Date.now() });

/** Grows when events may have been skipped; pages must reload their data. */
export const generation = signal(0);

/** When the stream was last live; null while it is live. */
export const staleSince = signal(null);

let postToStream = null; // asks the stream to try at once
const listeners = new Set();
let queue = [];
let waiting = false;
let last = -Infinity; // when events were last given to the pages

/** Calls fn with the events of one frame whose type begins with one of types. Returns how to stop. */
export function onEvents(types, fn) {
  const entry = { types, fn };
  listeners.add(entry);
  return () => listeners.delete(entry);
}

/** onEvents for as long as a component is there. */
export function useEvents(types, fn) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => (types.length ? onEvents(types, (events) => latest.current(events)) : undefined), [types.join()]);
}

/** Tries to connect now. */
export const retryLive = () => postToStream?.('retry');

let ready;
let late = false; // the stream was not live when the pages began to load
let seen = null; // the stream's own generation, which is older than this tab
/** Resolves when the stream is live, or after a moment. Data loaded then misses no event. */
export const liveReady = new Promise((resolve) => { ready = resolve; });

export function startLive() {
  if (postToStream) return retryLive();
  setTimeout(() => { late = live.value.state !== 'live'; ready(); }, 400);
  postToStream = sharedStream() || ownStream();
}

const perFrame = 200; // a burst of thousands must not hold up what the reader does
const pause = 100; // between two parts of a burst: each draws the page

/** What the stream says: events, or its new state. */
export function receive({ events, state }) {
  if (events) {
    queue = queue.concat(events);
    flushSoon();
    return;
  }
  batch(() => {
    if (state.state === 'live') staleSince.value = null;
    else staleSince.value ??= state.since;
    live.value = state;
    if (state.state === 'live') {
      // The first stream is no gap, unless the pages did not wait for it.
      if (seen === null ? late : state.generation > seen) generation.value++;
      seen = state.generation;
    }
  });
  document.documentElement.dataset.live = state.state === 'live' ? 'on' : 'off';
  if (state.state === 'live') ready();
}

// At most once a frame and ten times a second; a hidden tab has no frames.
function flushSoon() {
  if (waiting || !queue.length) return;
  waiting = true;
  const wait = last + pause - performance.now();
  if (document.hidden) setTimeout(flush, 500);
  else if (wait > 0) setTimeout(() => requestAnimationFrame(flush), wait);
  else requestAnimationFrame(flush);
}

function flush() {
  waiting = false;
  last = performance.now();
  const events = queue.slice(0, perFrame);
  queue = queue.slice(perFrame);
  flushSoon();
  batch(() => {
    for (const { types, fn } of [...listeners]) {
      const wanted = events.filter((event) => types.some((type) => event.type.startsWith(type)));
      if (wanted.length) fn(wanted);
    }
  });
}

function sharedStream() {
  if (!('SharedWorker' in window)) return null;
  // The only use of the page's Trusted Types policy.
  const policy = window.trustedTypes?.createPolicy('parley', { createScriptURL: (url) => url });
  const address = new URL('live_worker.js', import.meta.url).href;
  let worker;
  const connect = () => {
    worker = new SharedWorker(policy ? policy.createScriptURL(address) : address, { type: 'module', name: 'parley' });
    worker.port.onmessage = ({ data }) => receive(data);
  };
  connect();
  addEventListener('pagehide', () => worker.port.postMessage('bye'));
  addEventListener('pageshow', (event) => { if (event.persisted) connect(); });
  return (message) => worker.port.postMessage(message);
}

// Without shared workers each tab has its own stream, and closes it while hidden.
function ownStream() {
  const stream = follow('/console/events', receive);
  let stopped = false;
  let timer = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => { stopped = true; stream.stop(); }, 30_000);
    else if (stopped) { stopped = false; stream.start(); }
  });
  return () => stream.retry();
}
