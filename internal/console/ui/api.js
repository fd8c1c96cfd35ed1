// Requests to the server, with the cookie of the session: the endpoints that programs use.
import { signal, useState, useEffect, useRef } from './view.js';
import { go, route } from './router.js';
import { useEvents, generation } from './live.js';
import { texts } from './i18n.js';

const t = texts('core');

const root = '/console/api';

/** When the server stopped responding; null while it responds. */
export const goneSince = signal(null);

export class ApiError extends Error {
  constructor(status, body, headers) {
    super(body?.message || `HTTP ${status}`);
    this.status = status;
    this.code = body?.code || '';
    this.errors = body?.errors || {};
    this.retryAfter = Number(headers?.get('Retry-After')) || 0;
    this.requestId = headers?.get('X-Request-Id') || '';
  }
}

async function fetched(method, path, { query, channel, headers, body, signal: abort } = {}) {
  const params = Object.entries(query || {}).filter(([, value]) => value != null && value !== '');
  const address = root + path + (params.length ? '?' + new URLSearchParams(params) : '');
  let answer;
  try {
    answer = await fetch(address, {
      method,
      signal: abort,
      headers: { Accept: 'application/json',
        ...(body !== undefined && { 'Content-Type': body instanceof Blob ? body.type || 'application/octet-stream' : 'application/json' }),
        ...(channel && { 'X-Channel': channel }), ...headers },
      body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    goneSince.value ??= Date.now();
    throw new ApiError(0, { message: t('noServer') });
  }
  goneSince.value = null;
  if (answer.status === 401) signIn();
  return answer;
}

/** Goes to the sign-in page, and back to here after it. */
export function signIn() {
  const { name } = route.peek();
  if (name !== 'login') go('/login', { next: location.pathname + location.search, ended: 1, channel: null }, { replace: true });
}

async function json(method, path, options) {
  const answer = await fetched(method, path, options);
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, body, answer.headers);
  return body;
}

export const api = {
  get: (path, options) => json('GET', path, options),

  /** Up to n pages of a list, as one: {rows, total}. */
  async list(path, query, n) {
    const rows = [];
    for (let cursor, i = 0; ; i += 1) {
      const { data, meta } = await api.get(path, { query: { ...query, cursor } });
      rows.push(...data);
      cursor = meta.next_cursor;
      if (!cursor || i + 1 >= n) return { rows, total: meta.total };
    }
  },
  post: (path, body = {}, options) => json('POST', path, { ...options, body }),
  put: (path, body = {}, options) => json('PUT', path, { ...options, body }),
  patch: (path, body = {}, options) => json('PATCH', path, { ...options, body }),
  del: (path, options) => json('DELETE', path, options),

  /** The response, for any status: {status, headers, body, ms}. */
  async send(method, path, options) {
    const begun = performance.now();
    const answer = await fetched(method, path, options);
    const text = await answer.text();
    return { status: answer.status, headers: [...answer.headers], body: text, ms: performance.now() - begun };
  },

  /** The response itself, to be read in parts. */
  async open(method, path, options) {
    const answer = await fetched(method, path, options);
    if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null), answer.headers);
    return answer;
  },

  /** A file, for a blob: address; the caller revokes it. */
  async blob(path, options) {
    return (await api.open('GET', path, options)).blob();
  },
};

// How often a page that follows events asks again at most. A burst of thousands of events is one request.
const followEvery = 1000;

/**
 * useLoad loads something for a component and reloads it on events.
 * Old data stay visible while new data load. A response that a newer request overtook is dropped.
 * on: prefixes of event types that trigger a reload.
 */
export function useLoad(load, deps = [], { on = [] } = {}) {
  const [state, set] = useState({ data: undefined, error: null, loading: true });
  const turn = useRef(0);
  const latest = useRef(load);
  latest.current = load;
  const timer = useRef(0);

  const reload = useRef(async () => {
    clearTimeout(timer.current);
    timer.current = 0;
    const mine = ++turn.current;
    set((was) => ({ ...was, loading: true }));
    try {
      const data = await latest.current();
      if (mine === turn.current) set({ data, error: null, loading: false });
    } catch (error) {
      if (mine === turn.current && error.name !== 'AbortError') set((was) => ({ ...was, error, loading: false }));
    }
  }).current;

  // A stream that restarted without its cursor may have skipped events, so load again.
  useEffect(() => { reload(); }, [...deps, generation.value]);
  useEffect(() => () => { turn.current = -1; clearTimeout(timer.current); }, []);
  useEvents(on, () => { timer.current ||= setTimeout(reload, followEvery); });
  return { ...state, reload };
}

/** Ends the session here and on the server. */
export async function signOut() {
  await fetch('/console/session', { method: 'DELETE' });
  sessionStorage.clear(); // drafts are nothing for the next person
  location.assign('/console/login');
}
