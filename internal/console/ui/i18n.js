// Texts in three languages, and how numbers, sizes and times are written in each.
import { signal, effect, boot } from './view.js';

export const languages = { en: 'English', id: 'Bahasa Indonesia', 'pt-BR': 'Português (Brasil)' };

export const lang = signal(languages[boot.lang] ? boot.lang : 'en');
effect(() => { document.documentElement.lang = lang.value; });

const tables = new Map(); // language → section → texts by key
const pending = new Map(); // language → promise of its texts

function load(language) {
  if (!pending.has(language)) {
    const table = fetch(new URL(`i18n/${language}.json`, import.meta.url)).then((response) => response.json());
    pending.set(language, table.then((texts) => tables.set(language, texts)));
    pending.get(language).catch(() => pending.delete(language)); // the next call tries again
  }
  return pending.get(language);
}

/** Resolves when the reader's texts are loaded. */
export const textsReady = () => load(lang.peek());
textsReady().catch(() => {});

/** Changes the language once its texts are loaded. */
export async function speak(language) {
  await load(language);
  lang.value = language;
}

/**
 * texts returns the t() of one section of i18n/<language>.json. Only the reader's language is fetched.
 * t(key, values) fills {name} with values.name. In 'one|many' it selects the plural form for values.n.
 * If a value is not plain text (a vnode), t returns a list of pieces.
 */
export const texts = (section) => translator(() => tables.get(lang.value)?.[section]);

/** The t() of another language, once its texts are loaded. */
export async function textsIn(language, section) {
  await load(language);
  return translator(() => tables.get(language)?.[section]);
}

function translator(table) {
  const t = (key, values) => {
    let text = table()?.[key];
    if (text === undefined) return key;
    if (!values) return text;
    if ('n' in values && text.includes('|')) {
      const forms = text.split('|');
      text = plural().select(values.n) === 'one' ? forms[0] : forms.at(-1);
    }
    const pieces = text.split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? fill(values[piece]) : piece));
    return pieces.some((piece) => typeof piece === 'object') ? pieces : pieces.join('');
  };
  t.has = (key) => table()?.[key] !== undefined;
  return t;
}

const fill = (value) => (typeof value === 'number' ? num(value) : value ?? '');

// Formatters are costly to make and are used in every row: one of each kind and language.
const formatters = new Map();
function format(kind, options) {
  const key = lang.value + kind + JSON.stringify(options);
  if (!formatters.has(key)) formatters.set(key, new Intl[kind](lang.value, options));
  return formatters.get(key);
}
const plural = () => format('PluralRules');

export const num = (n, digits = 0) =>
  (n == null ? '–' : format('NumberFormat', { maximumFractionDigits: digits }).format(n));

/** A share. One that is nearly none or nearly all gets a digit more, so that it does not look like it. */
export function percent(part, all) {
  if (!all) return '–';
  const share = part / all;
  const close = part && part < all && (share < 0.01 || share > 0.99);
  return format('NumberFormat', { style: 'percent', maximumFractionDigits: close ? 1 : 0 }).format(share);
}

// Units are written by their international symbols, which the three languages use but for Indonesian minutes.
const unit = (n, name, digits = 0) => `${num(n, digits)} ${lang.value === 'id' && name === 'min' ? 'mnt' : name}`;

export function bytes(n) {
  if (n == null) return '–';
  const names = ['B', 'kB', 'MB', 'GB', 'TB'];
  const i = Math.min(names.length - 1, n < 1 ? 0 : Math.floor(Math.log10(n) / 3));
  return unit(n / 1000 ** i, names[i], i && n / 1000 ** i < 10 ? 1 : 0);
}

/** What is left of a countdown, in whole seconds. */
export const seconds = (s) => (s > 0 ? duration(s * 1000) : unit(0, 's'));

/** < 1 ms, 84 ms, 2.6 s, 3 min, 3 h 12 min, 12 d: two units at most. */
export function duration(ms) {
  if (ms == null) return '–';
  if (ms < 1) return `< ${unit(1, 'ms')}`;
  if (ms < 1000) return unit(Math.round(ms), 'ms');
  const s = ms / 1000;
  if (s < 60) return unit(s, 's', s < 10 ? 1 : 0);
  const two = (big, bigName, small, smallName) =>
    unit(Math.floor(big), bigName) + (Math.floor(small) ? ' ' + unit(Math.floor(small), smallName) : '');
  if (s < 3600) return two(s / 60, 'min', s < 600 ? s % 60 : 0, 's');
  if (s < 172800) return two(s / 3600, 'h', (s % 3600) / 60, 'min');
  return two(s / 86400, 'd', s < 864000 ? (s % 86400) / 3600 : 0, 'h');
}

const date = (at) => (at instanceof Date ? at : new Date(at));
const hms = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
const stamp = (at, options) => format('DateTimeFormat', options).format(date(at));

export const clock = (at) => stamp(at, hms);
export const day = (at) => stamp(at, { day: 'numeric', month: 'short' });
export const isToday = (at) => date(at).toDateString() === new Date().toDateString();

/** The whole time, local and in UTC: what a hover shows. */
export const full = (at) =>
  `${stamp(at, { dateStyle: 'full', timeStyle: 'medium' })} (${date(at).toISOString().replace(/\.\d+/, '')})`;
