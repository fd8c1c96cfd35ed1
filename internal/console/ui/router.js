// The address is the state: which page, which filter, which drawer. Links are plain <a href>.
import { signal, computed } from './view.js';

/** The table of pages. The app sets it: pages import this module, so this one must not import them. */
export const routes = signal([]);

const root = '/console';
const here = signal(location.pathname + location.search);

const url = computed(() => new URL(here.value, location.origin));

/** The query as an object: query.value.open. */
export const query = computed(() => Object.fromEntries(url.value.searchParams));

const path = computed(() => url.value.pathname.slice(root.length) || '/');

/** {name, path, load, icon, params}: a new object only when the path changes, not with the query. */
export const matched = computed(() => match(safe(path.value)));

// Finds the route of a path below /console, with its parameters. The last one is for paths that fit none.
function match(path) {
  const parts = path.split('/').filter(Boolean);
  for (const entry of routes.value) {
    const names = entry.path.split('/').filter(Boolean);
    const params = {};
    const fits = parts.length <= names.length && names.every((name, i) => {
      if (name[0] !== ':') return name === parts[i];
      const part = parts[i];
      if (part !== undefined) params[name.replace(/\W/g, '')] = decodeURIComponent(part);
      return part !== undefined || name.endsWith('?');
    });
    if (fits) return { ...entry, params };
  }
  return { ...routes.value.at(-1), params: {} };
}

/** What a page gets. */
export const route = computed(() => ({ ...matched.value, query: query.value, at: path.value }));

// An address like /console/channels/%ff is no text; it is no page either.
function safe(text) {
  try { decodeURIComponent(text); return text; } catch { return '/?'; }
}

/** The address of a page. The channel filter goes along unless the query says otherwise. */
export function href(to, changes = {}) {
  const next = new URL(root + to, location.origin);
  const { channel } = query.value;
  for (const [key, value] of Object.entries({ channel, ...changes })) {
    if (value != null && value !== '') next.searchParams.set(key, value);
  }
  return next.pathname + next.search;
}

/** The address of an entry of the table, without what varies in it. */
export const address = (entry) => href(entry.path.replace(/\/:.*/, '') || '/');

/** Goes to a page. */
export function go(to, changes, { replace } = {}) {
  move(to.startsWith(root + '/') ? to : href(to, changes), replace);
}

/** Changes some of the query; null takes a key away. */
export function setQuery(changes, { replace } = {}) {
  const next = new URL(url.peek());
  for (const [key, value] of Object.entries(changes)) {
    if (value == null || value === '') next.searchParams.delete(key);
    else next.searchParams.set(key, value);
  }
  if (next.href !== url.peek().href) move(next.pathname + next.search, replace);
}

function move(to, replace) {
  const samePage = new URL(to, location.origin).pathname === location.pathname;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  here.value = to;
  if (!samePage) scrollTo(0, 0);
}

addEventListener('popstate', () => { here.value = location.pathname + location.search; });

// A click on a link to the console changes the address without loading the page again. Links that ask for
// another window, a download or a key that opens one are the browser's.
addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(root + '/') || link.hash) return;
  event.preventDefault();
  move(link.pathname + link.search);
});
