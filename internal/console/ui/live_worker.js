// One stream for all tabs of this browser. Over HTTP/1.1 a browser has six connections to a server; a
// stream for each tab would stop the seventh from loading at all.
import { follow } from './stream.js';

const ports = new Set();
let stream = null;
let state = null; // the last, for tabs that come later
let queue = [];
let timer = 0;

const post = (message) => { for (const port of ports) port.postMessage(message); };

function flush() {
  timer = 0;
  post({ events: queue });
  queue = [];
}

function tell(message) {
  if (message.events) {
    queue.push(...message.events);
    timer ||= setTimeout(flush, 10); // a burst becomes few messages
    return;
  }
  state = message;
  post(message);
}

onconnect = ({ ports: [port] }) => {
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === 'bye') ports.delete(port);
    if (data === 'retry') stream?.retry();
  };
  // A tab opened after the session ended may have a new session, so retry instead of reporting the old end.
  if (state?.state.state === 'signed-out') {
    state = null;
    stream.retry();
  }
  if (state) port.postMessage(state);
  stream ??= follow('/console/events', tell);
};
