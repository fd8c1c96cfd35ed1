// The filter language: channel:demo to:62812 status:failed type:image after:1h "promo"
import { html, useState, useRef, useEffect, useId } from '../view.js';
import { Icon } from './icon.js';
import { number } from './who.js';
import { texts } from '../i18n.js';

const t = texts('core');

const known = ['channel', 'to', 'from', 'status', 'type', 'direction', 'after', 'before', 'id'];

/** What some keys can be, and nothing else. */
export const choices = {
  status: ['pending', 'sent', 'delivered', 'read', 'played', 'failed', 'deleted', 'received'],
  type: ['text', 'otp', 'image', 'video', 'file', 'voice', 'sticker', 'location', 'poll', 'contact'],
  direction: ['in', 'out'],
};

const forms = {
  number: /^\+?[\d\s().-]*$/, // and at least three digits: fewer are the codes of many countries at once
  time: /^\d{1,4}[smhdw]$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i,
};

// Whether the server would take a word. What it would not is left out, and not sent to be refused.
function fits({ key, value }) {
  if (choices[key]) return choices[key].includes(value.toLowerCase());
  if (key === 'after' || key === 'before') return forms.time.test(value);
  if (key !== 'to' && key !== 'from') return true;
  const { length } = number(value);
  return length >= 3 && length <= 15 && forms.number.test(value.split('@')[0]);
}

/** The words of a filter: [{key, value, start, end}]; a word without a key has key ''. */
function words(text) {
  const pattern = /(?:([a-z]+):)?(?:"([^"]*)"?|(\S*))/gi;
  const found = [];
  for (let match; (match = pattern.exec(text));) {
    if (!match[0]) { pattern.lastIndex++; if (pattern.lastIndex > text.length) break; continue; }
    const key = match[1]?.toLowerCase() || '';
    const value = match[2] ?? match[3];
    const isKnown = !key || known.includes(key);
    found.push({ key: isKnown ? key : '', value: isKnown ? value : match[0], start: match.index, end: match.index + match[0].length });
  }
  return found;
}

/** A filter as an object: {channel, to, from, status, type, direction, after, before, id, text}. */
export function parse(text) {
  const result = {};
  for (const { key, value } of words(text)) {
    if (!key) { if (value) result.text = result.text ? `${result.text} ${value}` : value; } else if (value &&
      fits({ key, value })) result[key] = choices[key] ? value.toLowerCase() : value;
  }
  return result;
}

/** The words of a filter that nothing can be found by, as they were typed. */
export const leftOut = (text) => words(text).filter((word) => word.key && word.value && !fits(word))
  .map(({ start, end }) => text.slice(start, end));

const isDialled = (text) => /^[+0][\d\s().\/-]{6,}$/.test(text || '');

/** What GET /manage/messages takes for a filter. It does not tell codes from other texts: who asks for type:otp looks through those. */
export function toQuery({ to, from, status, type, direction, text, ...rest }) {
  const otp = type === 'otp';
  const dialled = isDialled(text); // a number as people write it is who, not what
  return { ...rest, text: dialled ? undefined : text, type: otp ? 'text' : type, contact: number(to || from) || (dialled ? text : ''),
    direction: direction || (to || otp ? 'out' : from ? 'in'
    : undefined), status: status?.toUpperCase() };
}

/** Completions at the caret: [{text, start, end}] */
function completions(text, caret, values) {
  const word = words(text).find(({ start, end }) => start <= caret && caret <= end) || { key: '', value: '', start: caret, end: caret };
  const typed = text.slice(word.start, caret).toLowerCase();
  const all = word.key ? (values[word.key] || []).map((value) => `${word.key}:${value} `) : Object.keys(values).map((key) => `${key}:`);
  return all.filter((one) => one.toLowerCase().startsWith(typed) && one.trim().toLowerCase() !== typed).slice(0, 8)
    .map((one) => ({ text: one, start: word.start, end: word.end }));
}

/**
 * The input with its completion. values: {status: ['sent', …], channel: […], after: ['1h', …]}: keys in their order.
 * onChange(text) is called when the reader stops typing for a moment, or presses Enter.
 */
export function FilterInput({ value, onChange, values, label, placeholder }) {
  const [text, setText] = useState(value);
  const [offers, setOffers] = useState([]);
  const [at, setAt] = useState(-1);
  const input = useRef();
  const timer = useRef(0);
  const sent = useRef(value); // the input may differ: a word may be half typed
  const id = useId();
  const soon = (fn, ms) => { clearTimeout(timer.current); timer.current = setTimeout(fn, ms); };
  useEffect(() => {
    if (value === sent.current) return;
    clearTimeout(timer.current);
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const tell = (next) => {
    clearTimeout(timer.current);
    if (next.trim() === sent.current) return;
    sent.current = next.trim();
    onChange(sent.current);
  };
  const offer = (next, caret = input.current.selectionStart) => {
    const list = completions(next, caret, values);
    setOffers(list);
    setAt(-1);
    return list[0];
  };
  // A word that can still become one of those offered is not looked for yet, unless the beginning of a number is.
  const change = (next, caret) => {
    setText(next);
    const one = offer(next, caret);
    const half = one && !/^(to|from):\d{3}/i.test(next.slice(one.start, one.end));
    soon(() => tell(half ? next.slice(0, one.start) + next.slice(one.end) : next), 300);
  };
  const done = () => { setOffers([]); tell(input.current.value); };
  const take = ({ text: words, start, end }) => {
    const next = text.slice(0, start) + words + text.slice(end).trimStart();
    const caret = start + words.length;
    change(next, caret);
    requestAnimationFrame(() => {
      input.current.focus();
      input.current.setSelectionRange(caret, caret);
    });
  };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && offers.length) setAt((at + step + offers.length) % offers.length);
    else if ((event.key === 'Enter' || event.key === 'Tab') && offers[at]) take(offers[at]);
    else if (event.key === 'Enter' || (event.key === 'Escape' && offers.length)) done();
    else if (event.key === 'Escape') input.current.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="filter">
    <${Icon} name="filter" />
    <input ref=${input} data-search type="text" role="combobox" aria-label=${label} aria-expanded=${String(offers.length > 0)}
      aria-controls=${id} aria-autocomplete="list"
      aria-activedescendant=${offers[at] ? `${id}-${at}` : undefined} autocomplete="off" autocapitalize="off" spellcheck=${false}
        placeholder=${placeholder} value=${text}
      onInput=${(event) => change(event.target.value)} onFocus=${() => offer(text)} onBlur=${() => soon(done, 150)} onKeyDown=${keys} />
    ${text && html`<button type="button" class="icon-button small" aria-label=${t('clearFilter')} title=${t('clearFilter')}
      onClick=${() => { setText(''); tell(''); }}><${Icon} name="close" size=${14} /></button>`}
    <ul id=${id} role="listbox" aria-label=${label} class="offers" hidden=${!offers.length}>${offers.map((one, i) => html`
      <li key=${one.text} id="${id}-${i}" role="option" aria-selected=${String(i === at)}
        onMouseDown=${(event) => { event.preventDefault(); take(one); }}>${one.text}</li>`)}</ul>
  </div>`;
}
