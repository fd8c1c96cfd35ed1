// The place that a message names.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { masked } from '../state.js';
import { mask } from './who.js';

const t = texts('phone');

// The land of the earth, very roughly: longitude + 180 and 90 - latitude of the corners of each piece.
const land = `M12 24 24 19 52 20 85 22 98 27 86 31 98 38 103 28 115 31 124 38 114 45 104 55 99 65 86 61 83 70 93 71 102 82 86 74 68 61 56
  50 56 42 45 32 30 30 16 35z M102 82 118 80 145 96 132 116 115 132 111 142 106 140 110 108 99 95z M174 54 190 53 212 59 223
  78 231 78 220 94 213 117 207 124 198 124 192 107 189 86 172 86 163 76z M171 53 171 47 178 46 175 42 188 36 204 35 202 25 185
  32 195 21 206 19 224 26 280 13 320 18 360 21 343 30 336 39 335 31 322 31 315 36 310 48 302 51 301 59 288 70 285 81 280 76
  277 73 271 68 257 82 252 70 237 64 232 74 223 77 215 62 216 54 207 53 199 48 192 48 183 47z M125 8 160 8 158 20 136 30 112
  13z M294 112 310 102 321 101 333 117 330 127 324 129 309 122 295 124z M275 85 284 92 285 96z M289 89 297 83 299 89 295 94z
  M285 97 294 98z M311 91 321 93 330 100 318 98z M310 58 320 54 321 47 325 46 319 53z M175 40 181 39 178 33z M353 125 358 128
  350 136z M224 114 229 103 230 106z`;

/** A place: the earth drawn from memory, a pin and the coordinates. No tiles are fetched. */
export function Place({ m }) {
  const { latitude, longitude, title, address } = m.location;
  const [x, y] = [Number(longitude) + 180, 90 - Number(latitude)];
  return html`<figure class="place">
    <svg viewBox="0 0 360 150" role="img" aria-label=${t('mapOf', { place: `${latitude}, ${longitude}` })}>
      <path class="grid" d="M60 0v150M120 0v150M180 0v150M240 0v150M300 0v150M0 30h360M0 60h360M0 90h360M0 120h360" />
      <path class="land" d=${land} />
      <path class="pin" d="M${x} ${y}l-7-14a8 8 0 1 1 14 0z" /><circle class="hole" cx=${x} cy=${y - 18} r="3" />
    </svg>
    <figcaption>${[title, address].filter(Boolean).map((line) => html`<bdi>${mask(line)}</bdi> `)}<span class="muted mono-num">
      ${mask(`${latitude}, ${longitude}`)}</span>
      ${!masked.value && html` <a href=${`geo:${latitude},${longitude}?q=${latitude},${longitude}`}>${t('openMap')}</a>`}</figcaption>
  </figure>`;
}
