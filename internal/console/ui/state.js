// Shared state: the channels, the selected one, and the reader's preferences.
import { signal, computed, effect, boot, useEffect } from './view.js';
import { api } from './api.js';
import { onEvents, generation } from './live.js';
import { matched, query, setQuery } from './router.js';
import { lang, languages, speak } from './i18n.js';

export { lang, languages };

// Channels. There may be thousands: the server is asked for those that are needed, and for how many there are.

const perList = 20; // sandbox channels that are known from the start
const mostKnown = 1000; // channels in memory

const known = signal(new Map());

/** A channel that was seen, or undefined; the picked one is always asked for. */
export const channelBy = (code) => known.value.get(code);

/** Remembers channels that a response had. */
export function addChannels(rows) {
  if (!rows.length) return;
  const next = new Map(known.peek());
  for (const row of rows) { next.delete(row.code); next.set(row.code, row); }
  known.value = new Map([...next].slice(-mostKnown));
}

/** How many channels there are: {all, real, sandbox, working, faults}; null until it is known. working: of the real ones. */
export const totals = signal(null);
export const channelsLoaded = computed(() => totals.value !== null);
export const manyChannels = computed(() => totals.value?.all > 1);

// The first sandbox channels, and the real one where there is only one.
const firsts = signal([]);

/** Channels with simulated phones, oldest first: the picked one, and some others. Those that only keep history have none. */
export const sandboxes = computed(() => {
  const list = firsts.value.map((code) => known.value.get(code));
  const picked = known.value.get(selected.value);
  if (picked && !list.includes(picked)) list.push(picked);
  return list.filter((channel) => channel?.simulated && !channel.archive_of);
});

export async function reloadChannels() {
  const { data, meta } = await api.get('/manage/channels', { query: { simulated: true, sort: 'created_at', limit: perList } });
  const sandbox = meta.total;
  const real = Object.values(meta.networks).reduce((sum, n) => sum + n, 0) - sandbox;
  const others = real ? await api.get('/manage/channels', { query: { simulated: false, limit: 2 } }) : { data: [] };
  // Where the oldest ones do not work, others that do come first.
  const useful = meta.statuses.WORKING && !data.some((channel) => channel.status === 'WORKING');
  const working = useful ? (await api.get('/manage/channels',
    { query: { simulated: true, status: 'WORKING', sort: 'created_at', limit: perList } })).data : [];
  const picked = selected.peek();
  addChannels([...data, ...others.data, ...working]);
  firsts.value = [...working, ...data, ...(real === 1 && !sandbox ? others.data : [])].map((channel) => channel.code);
  if (picked && ![...data, ...others.data].some((channel) => channel.code === picked)) await ask(picked);
  totals.value = { all: sandbox + real, real, sandbox, working: others.meta?.statuses.WORKING || 0, faults: meta.faults };
}

// A code that names nothing stays unknown.
const ask = async (code) => {
  try { addChannels([(await api.get(`/manage/channels/${encodeURIComponent(code)}`)).data]); } catch {
    /* its own page says that there is none */ }
};

/** The code that the top bar filters by, or ''. On the page of one channel it is that one. */
export const selected = computed(() => (matched.value.name === 'channel' ? matched.value.params.code : query.value.channel) || '');
export const select = (code) => setQuery({ channel: code || null });

/** A channel for what needs one: the picked one, else a sandbox channel that works, else the only one there is. */
export const currentChannel = computed(() => (selected.value ? known.value.get(selected.value)
  : sandboxes.value.find((channel) => channel.status === 'WORKING') || sandboxes.value[0] || (totals.value?.all === 1
    ? known.value.get(firsts.value[0]) : undefined)));

/** The channel that a form begins with. Beside a real channel it must be picked. */
export const formChannel = computed(() => (selected.value || !totals.value?.real || totals.value.all === 1 ? currentChannel.value
  : undefined));

/** The channel that the page is about: that of the open conversation, or the picked one. */
export const shownChannel = computed(() => known.value.get((matched.value.name === 'conversations' && matched.value.params.code) ||
  selected.value));

/** Whether nothing done here can reach a real phone: the shown channel decides, or all of them. */
export const sandboxOnly = computed(() => {
  if (matched.value.name === 'phone' || (matched.value.name === 'otp' && !shownChannel.value)) return totals.value
    ? totals.value.real < totals.value.all : boot.band === 'sandbox';
  if (shownChannel.value) return shownChannel.value.simulated;
  return totals.value ? totals.value.real === 0 : boot.band === 'sandbox';
});

/** What the band shows; plain until it is known. */
export const band = computed(() => (!totals.value && !shownChannel.value && boot.band === 'plain' ? 'plain' : sandboxOnly.value
  ? 'sandbox' : 'live'));

/** How many faults are on now; the band shows it, but not over a real channel. */
export const faults = computed(() => (shownChannel.value && !shownChannel.value.simulated ? 0 : totals.value?.faults || 0));

/** What this session may do; '' until it is known. */
export const role = signal(boot.role || '');
export const roles = ['viewer', 'support', 'operator', 'owner'];
export const hasRole = (least) => roles.indexOf(role.value) >= roles.indexOf(least);

/** What GET /manage/server says. */
export const server = signal(null);

/** What the server says of a network, by its name: {title, simulated, pairing, kinds, …}; undefined until it is known. */
export const networkBy = (name) => server.value?.networks.find((network) => network.name === name);

/** Whether a route is offered here, and to this role. */
export const isOffered = (entry) => (!entry.cluster || server.value?.cluster === true) && !(entry.apart && role.value === 'support');

export function startState() {
  const load = () => {
    reloadChannels().catch(() => {});
    api.get('/manage/me').then((answer) => { role.value = answer.data.role; }).catch(() => {});
    api.get('/manage/server').then((answer) => { server.value = answer.data; }).catch(() => {});
  };
  load();
  generation.subscribe((n) => { if (n) load(); });
  effect(() => { if (selected.value && !known.peek().has(selected.value)) ask(selected.value); });
  let asked = 0;
  const soon = () => { asked ||= setTimeout(() => { asked = 0; reloadChannels().catch(() => {}); }, 1000); };
  // A send may have used up a fault; there is no event for that.
  onEvents(['message.status', 'channel.status'], () => { if (faults.value) soon(); });
  onEvents(['channel.'], (events) => {
    const changed = new Map(known.value);
    for (const { type, channel, data } of events) {
      const was = changed.get(channel);
      // The start of a channel may be the first that is heard of it.
      if (!was && data.status === 'STARTING') soon();
      if (!was) continue;
      const { was: _, ...status } = data;
      changed.set(channel, type === 'channel.pairing' ? { ...was, pairing: data } : { ...was, ...status });
    }
    known.value = changed;
  });
}

/** What a message says, in one line of a list. The stars around a hidden code are for phones. */
export const toLine = (m) => (m.otp ? m.body.replace(/\*(•+)\*/g, '$1') : m.body);

// What the reader likes. The server reads theme and lang from cookies, so that the first paint is right; the
// rest is this browser's own.

const setCookie = (name, value) => {
  document.cookie = `${name}=${value}; Path=/console; Max-Age=31536000; SameSite=Strict`;
};

export const theme = signal(document.documentElement.dataset.theme || 'auto');

export function setTheme(value) {
  theme.value = value;
  document.documentElement.dataset.theme = value;
  setCookie('theme', value);
}

export async function setLang(value) {
  await speak(value);
  setCookie('lang', value);
}

/** A signal that is stored. */
function storedIn(storage, name, initial) {
  let start = initial;
  try { start = JSON.parse(storage.getItem(name)) ?? initial; } catch { /* a storage that is switched off keeps nothing */ }
  const stored = signal(start);
  effect(() => {
    const text = JSON.stringify(stored.value);
    try { storage.setItem(name, text); } catch { /* as above */ }
  });
  return stored;
}

export const stored = (name, initial) => storedIn(localStorage, `parley.${name}`, initial);

/** Numbers and texts are hidden, for a shared screen. Ends with the tab. */
export const masked = storedIn(sessionStorage, 'parley.masked', false);
/** Single-key shortcuts can be switched off. */
export const shortcuts = stored('shortcuts', true);
/** The phone is pinned at the right of every page. */
export const pinned = stored('pinned', false);

/** Whether the palette, which finds anything, is open. */
export const paletteOpen = signal(false);
export const helpOpen = signal(false);

// Time that components follow: one timer for all of them, and the fast one only while somebody needs it.

export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 10_000);

const second = signal(Date.now());
let watching = 0;
let ticking = 0;

/** The time, each second, for as long as the component is there. */
export function useSecond() {
  useEffect(() => {
    if (!watching++) ticking = setInterval(() => { second.value = Date.now(); }, 1000);
    second.value = Date.now();
    return () => { if (!--watching) clearInterval(ticking); };
  }, []);
  return second.value;
}
