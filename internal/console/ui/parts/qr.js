// A QR code from its rows of '0' and '1'. Black on white in both themes: a camera wants it so.
import { html } from '../view.js';

const quiet = 4; // modules of white around it; with fewer, some cameras do not find it

export function QR({ rows, label, size = 288 }) {
  const side = rows.length + 2 * quiet;
  let path = '';
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) path += `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`;
  });
  return html`<svg class="qr" width=${size} height=${size} viewBox="0 0 ${side} ${side}" role="img" aria-label=${label} shape-rendering="crispEdges">
    <rect width=${side} height=${side} fill="#fff" /><path d=${path} fill="#000" />
  </svg>`;
}
