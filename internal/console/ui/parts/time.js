// Times: the clock beside how long ago, UTC on hover; and countdowns.
import { html } from '../view.js';
import { clock, day, full, isToday, duration, seconds, texts } from '../i18n.js';
import { now, useSecond } from '../state.js';

const t = texts('core');

const units = [86_400_000, 3_600_000, 60_000, 1000];

const soon = 5000; // clocks differ a little: what is so near is not in the future

/** "3 min ago", or "in 3 min": the same symbols of units as everywhere else, and one is enough. */
function ago(at) {
  const ahead = Date.parse(at) - Date.now();
  const ms = ahead > soon ? ahead : Math.max(1000, now.value - Date.parse(at));
  const unit = units.find((one) => ms >= one);
  return t(ahead > soon ? 'ahead' : 'ago', { time: duration(ms - (ms % unit)) });
}

/** 12:04:33, with the day where it is not today; with ago also "3 min ago" beside it. */
export function Time({ at, ago: relative }) {
  if (!at) return '–';
  return html`<time datetime=${at} title=${full(at)}>${isToday(at) ? clock(at) : `${day(at)} ${clock(at).slice(0, 5)}`}${
    relative && html` <span class="muted">· ${ago(at)}</span>`}</time>`;
}

const stamps = /(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?)/;

/** A sentence of the server in English, the times in it as the reader writes them. at: the time that is in it without a zone. */
export const Said = ({ text, at }) => html`<bdi lang="en">${text.split(stamps).map((piece, i) => {
  const time = i % 2 && (/(Z|UTC)$/.test(piece) ? piece.replace(' UTC', 'Z').replace(' ', 'T') : at);
  return time ? html`<${Time} at=${time} />` : piece;
})}</bdi>`;

/** How long it is until a time, each second; what is past is 0 s. */
export function Left({ until }) {
  return seconds(Math.ceil((Date.parse(until) - useSecond()) / 1000));
}

/** A ring that empties until a time. total is its whole length in seconds. */
export function Ring({ until, total, label, size = 28 }) {
  const left = Math.max(0, (Date.parse(until) - useSecond()) / 1000);
  const around = 2 * Math.PI * 10;
  return html`<svg class="ring" width=${size} height=${size} viewBox="0 0 24 24" role="img" aria-label=${label || seconds(Math.ceil(left))}>
    <circle class="ring-back" cx="12" cy="12" r="10" />
    <circle class="ring-left" cx="12" cy="12" r="10" stroke-dasharray=${around}
      stroke-dashoffset=${around * (1 - Math.min(1, left / total))} />
  </svg>`;
}
