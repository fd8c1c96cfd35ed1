// Shared state: the channels, the selected one, and the reader's preferences.
import { signal, computed, effect, boot, useEffect } from './view.js';
import { api } from './api.js';
import { onEvents, generation } from './live.js';
import { matched, query, setQuery } from './router.js';
import { lang, languages, speak } from './i18n.js';

export { lang, languages };

// Channels: loaded once, updated by events.

export const channels = signal([]);
export const channelsLoaded = signal(false);
const byCode = computed(() => new Map(channels.value.map((channel) => [channel.code, channel])));

export const channelBy = (code) => byCode.value.get(code);

export async function reloadChannels() {
  channels.value = (await api.get('/manage/channels')).data;
  channelsLoaded.value = true;
}

/** The code that the picker in the top bar filters by, or ''. On the page of one channel it is that one. */
export const selected = computed(() => (matched.value.name === 'channel' ? matched.value.params.code : query.value.channel) || '');
export const select = (code) => setQuery({ channel: code || null });

/** A channel for what needs one: the picked one, or the first. */
export const chosen = computed(() => byCode.value.get(selected.value) || channels.value[0]);

const real = computed(() => channels.value.filter((channel) => channel.network !== 'sandbox'));
export const realChannels = real;

/** Whether nothing that is done here can reach a real phone. The picked channel decides, or all of them. */
export const sandboxOnly = computed(() => {
  if (!channelsLoaded.value) return !boot.live;
  const picked = byCode.value.get(selected.value);
  return picked ? picked.network === 'sandbox' : real.value.length === 0;
});

/** How many faults of the simulated network are on now; the band shows it. */
export const faults = computed(() => channels.value.reduce((sum, channel) => sum + (channel.faults || 0), 0));

/** What this session may do: viewer, support, operator or owner; '' until it is known. */
export const role = signal(boot.role || '');
export const roles = ['viewer', 'support', 'operator', 'owner'];
export const may = (least) => roles.indexOf(role.value) >= roles.indexOf(least);

/** What GET /manage/server says. */
export const server = signal(null);

/** Whether a route is offered here: pages of a cluster only where the server is a node of one. */
export const isOffered = (entry) => !entry.cluster || server.value?.cluster === true;

export function startState() {
  const load = () => {
    reloadChannels().catch(() => {});
    api.get('/manage/me').then((answer) => { role.value = answer.data.role; }).catch(() => {});
    api.get('/manage/server').then((answer) => { server.value = answer.data; }).catch(() => {});
  };
  load();
  generation.subscribe((n) => { if (n) load(); });
  // A send may have used up a fault; there is no event for that.
  let asked = 0;
  onEvents(['message.status', 'channel.status'], () => {
    if (faults.value && !asked) asked = setTimeout(() => { asked = 0; reloadChannels().catch(() => {}); }, 1000);
  });
  onEvents(['channel.'], (events) => {
    const changed = new Map(byCode.value);
    for (const { type, channel, data } of events) {
      const was = changed.get(channel);
      if (!was) { reloadChannels().catch(() => {}); continue; }
      const { was: _, ...status } = data;
      changed.set(channel, type === 'channel.pairing' ? { ...was, pairing: data } : { ...was, ...status });
    }
    channels.value = [...changed.values()];
  });
}

/** What a message says, in one line of a list. The stars around a hidden code are for phones. */
export const lineOf = (m) => (m.otp ? m.body.replace(/\*(•+)\*/g, '$1') : m.body);

// What the reader likes. The server reads theme and lang from cookies, so that the first paint is right; the
// rest is this browser's own.

const remember = (name, value) => {
  document.cookie = `${name}=${value}; Path=/console; Max-Age=31536000; SameSite=Strict`;
};

export const theme = signal(document.documentElement.dataset.theme || 'auto');

export function setTheme(value) {
  theme.value = value;
  document.documentElement.dataset.theme = value;
  remember('theme', value);
}

export async function setLang(value) {
  await speak(value);
  remember('lang', value);
}

/** A signal that is stored. */
function keptIn(storage, name, initial) {
  let start = initial;
  try { start = JSON.parse(storage.getItem(name)) ?? initial; } catch { /* a storage that is switched off keeps nothing */ }
  const kept = signal(start);
  effect(() => {
    const text = JSON.stringify(kept.value);
    try { storage.setItem(name, text); } catch { /* as above */ }
  });
  return kept;
}

export const kept = (name, initial) => keptIn(localStorage, `parley.${name}`, initial);

/** Numbers and texts are hidden, for a shared screen. Ends with the tab. */
export const masked = keptIn(sessionStorage, 'parley.masked', false);
/** Single-key shortcuts can be switched off. */
export const shortcuts = kept('shortcuts', true);
/** The phone is pinned at the right of every page. */
export const pinned = kept('pinned', false);

/** Whether the palette, which finds anything, is open. */
export const paletteOpen = signal(false);

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
