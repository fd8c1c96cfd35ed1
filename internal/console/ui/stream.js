// Reads the server's event stream, forever: it detects that the stream ended or went silent, reconnects by
// itself, and goes on after the last event it saw. Used by the shared worker, and by a page that has none.
//
// It reads with fetch and not with EventSource, which hides the comments that the server sends every
// 15 seconds (so that a dead connection looks like a quiet one) and the status 401.

const silence = 40_000; // more than two of the server's comments were missed
const delays = [1000, 2000, 4000, 8000, 15_000];

/**
 * follow reads address and calls back with {events: […]} and {state: {…}}:
 * state 'live' | 'reconnecting' | 'signed-out'; since when; retryAt while it waits; generation, which grows
 * when events may have been left out. It returns {stop, start, retry}; started again, it goes on where it was.
 */
export function follow(address, tell) {
  let last = ''; // the id of the last event
  let failures = 0;
  let generation = 0;
  let run = 0; // which loop is the current one
  let abort = null;
  let wake = null;

  const state = (name, more) => tell({ state: { state: name, since: Date.now(), generation, ...more } });

  async function read() {
    abort = new AbortController();
    let alarm;
    const heard = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => abort.abort(), silence);
    };
    heard();
    try {
      const answer = await fetch(address, { signal: abort.signal, headers: last ? { 'Last-Event-ID': last } : {} });
      if (answer.status === 401 || answer.status === 403) return 'signed-out';
      if (!answer.ok) return 'failed';
      if (!last) generation++;
      failures = 0;
      state('live');
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { value, done } = await reader.read();
        if (done) return 'ended';
        heard();
        const blocks = (rest + value).split('\n\n');
        rest = blocks.pop();
        if (deliver(blocks) === 'lost') return 'lost';
      }
    } catch {
      return 'failed';
    } finally {
      clearTimeout(alarm);
      abort.abort();
    }
  }

  function deliver(blocks) {
    const events = [];
    for (const block of blocks) {
      // The cursor is older than the log. The server would replay the whole log, so begin with new events
      // instead, and let the pages load again.
      if (/^: .*going on with the oldest/.test(block)) return 'lost';
      const data = block.split('\n').find((line) => line.startsWith('data:'));
      if (!data) continue;
      const event = JSON.parse(data.slice(5));
      last = event.id;
      events.push(event);
    }
    if (events.length) tell({ events });
  }

  async function loop(mine) {
    while (mine === run) {
      const end = await read();
      if (mine !== run) return;
      if (end === 'signed-out') {
        state('signed-out');
        await new Promise((resolve) => { wake = resolve; });
        continue;
      }
      if (end === 'lost') last = '';
      // Jitter, so that browsers do not all reconnect at once after a restart.
      const delay = end === 'lost' ? 0 : delays[Math.min(failures, delays.length - 1)] * (0.8 + Math.random() * 0.4);
      failures++;
      state('reconnecting', { retryAt: Date.now() + delay });
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, delay); });
    }
  }
  loop(run);

  return {
    stop() { run++; abort?.abort(); wake?.(); },
    start() { loop(++run); },
    retry() { wake?.(); },
  };
}
