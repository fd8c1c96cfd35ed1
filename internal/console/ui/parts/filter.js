// The filter language: channel:demo to:62812 status:failed type:image after:1h "promo"
import { html, useState, useRef, useEffect, useId } from '../view.js';
import { Icon } from './icon.js';
import { texts } from '../i18n.js';

const t = texts('core');

const known = ['channel', 'to', 'from', 'status', 'type', 'direction', 'after', 'before', 'id'];

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
    if (!key) { if (value) result.text = result.text ? `${result.text} ${value}` : value; } else if (value) result[key] = value;
  }
  return result;
}

/** An object as a filter. */
export function format({ text, ...rest }) {
  const quote = (value) => (/[\s"]|^$/.test(value) ? `"${value.replaceAll('"', '')}"` : value);
  return [...Object.entries(rest).filter(([, value]) => value).map(([key, value]) => `${key}:${quote(String(value))}`), ...(text ? [quote(text)] : [])].join(' ');
}

/** What GET /manage/messages takes for a filter. */
export function toQuery({ to, from, status, direction, ...rest }) {
  return { ...rest, contact: to || from, direction: direction || (to ? 'out' : from ? 'in' : undefined), status: status?.toUpperCase() };
}

/** What could stand at the caret: [{text, start, end}] */
function completions(text, caret, values) {
  const word = words(text).find(({ start, end }) => start <= caret && caret <= end) || { key: '', value: '', start: caret, end: caret };
  const typed = text.slice(word.start, caret).toLowerCase();
  const all = word.key ? (values[word.key] || []).map((value) => `${word.key}:${value} `) : Object.keys(values).map((key) => `${key}:`);
  return all.filter((one) => one.toLowerCase().startsWith(typed) && one.trim().toLowerCase() !== typed).slice(0, 8).map((one) => ({ text: one, start: word.start, end: word.end }));
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
  const id = useId();
  // What the reader types may end with a space that the value has not.
  useEffect(() => { if (value !== text.trim()) setText(value); }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const offer = (next) => { setOffers(completions(next, input.current.selectionStart, values)); setAt(-1); };
  const change = (next) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(next.trim()), 300);
  };
  const take = ({ text: words, start, end }) => {
    const next = text.slice(0, start) + words + text.slice(end).trimStart();
    change(next);
    requestAnimationFrame(() => {
      input.current.focus();
      input.current.setSelectionRange(start + words.length, start + words.length);
      offer(next);
    });
  };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && offers.length) setAt((at + step + offers.length) % offers.length);
    else if ((event.key === 'Enter' || event.key === 'Tab') && offers[at]) take(offers[at]);
    else if (event.key === 'Enter') { setOffers([]); clearTimeout(timer.current); onChange(text.trim()); } else if (event.key === 'Escape' && offers.length) setOffers([]);
    else if (event.key === 'Escape') input.current.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="filter">
    <${Icon} name="filter" />
    <input ref=${input} data-search type="text" role="combobox" aria-label=${label} aria-expanded=${String(offers.length > 0)} aria-controls=${id} aria-autocomplete="list"
      aria-activedescendant=${offers[at] ? `${id}-${at}` : undefined} autocomplete="off" autocapitalize="off" spellcheck=${false} placeholder=${placeholder} value=${text}
      onInput=${(event) => { change(event.target.value); offer(event.target.value); }} onFocus=${() => offer(text)} onBlur=${() => setTimeout(() => setOffers([]), 150)} onKeyDown=${keys} />
    ${text && html`<button type="button" class="icon-button small" aria-label=${t('clearFilter')} title=${t('clearFilter')} onClick=${() => { setText(''); onChange(''); }}><${Icon} name="close" size=${14} /></button>`}
    <ul id=${id} role="listbox" aria-label=${label} class="offers" hidden=${!offers.length}>${offers.map((one, i) => html`
      <li key=${one.text} id="${id}-${i}" role="option" aria-selected=${String(i === at)} onMouseDown=${(event) => { event.preventDefault(); take(one); }}>${one.text}</li>`)}</ul>
  </div>`;
}
