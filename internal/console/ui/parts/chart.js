// Small charts in SVG. Each can be read as a table or as words.
import { html, useState } from '../view.js';
import { texts, num, clock, full } from '../i18n.js';
import { IconButton } from './button.js';

const t = texts('core');

/**
 * Bars over time: series [{id, label, tone, lane, nested}], rows [{at, <id>: n, …}] from old to new.
 * Series of one lane are stacked; nested ones are drawn in front of each other, because each counts a part
 * of the one before (what was read was sent). Lanes are side by side.
 */
export function Bars({ label, series, rows, height = 120 }) {
  const [asTable, setAsTable] = useState(false);
  const lanes = 1 + Math.max(...series.map(({ lane = 0 }) => lane));
  const total = (row) => series.reduce((sum, { id }) => sum + (row[id] || 0), 0);
  const tall = (row, lane) => {
    const mine = series.filter((one) => (one.lane || 0) === lane);
    const nested = Math.max(0, ...mine.filter((one) => one.nested).map(({ id }) => row[id] || 0));
    return mine.filter((one) => !one.nested).reduce((sum, { id }) => sum + (row[id] || 0), nested);
  };
  const top = Math.max(4, ...rows.flatMap((row) => Array.from({ length: lanes }, (_, lane) => tall(row, lane))));
  const scale = (n) => Math.max(1.5, (n / top) * (height - 4));
  const legend = html`<ul class="legend">${series.map(({ id, label: name, tone }) => html`
    <li key=${id}><i class="swatch ${tone}" />${name} <b>${num(rows.reduce((sum, row) => sum + (row[id] || 0), 0))}</b></li>`)}</ul>`;
  const minute = (at) => clock(at).slice(0, 5);
  return html`<figure class="chart" aria-label=${label}>
    <div class="spread">${legend}<${IconButton} icon="table" label=${t('asTable')} pressed=${asTable} onClick=${() => setAsTable(!asTable)} /></div>
    ${asTable ? html`<div class="table-scroll" tabindex="0" role="region" aria-label=${label}><table class="table plain"><thead><tr><th scope="col">${t('time')}</th>${series.map((one) => html`<th key=${one.id} scope="col" class="end">${one.label}</th>`)}</tr></thead>
        <tbody>${rows.filter(total).reverse().map((row) => html`<tr key=${row.at}><td>${minute(row.at)}</td>${series.map(({ id }) => html`<td key=${id} class="end">${num(row[id] || 0)}</td>`)}</tr>`)}</tbody></table></div>`
    : html`<div class="plot"><span class="plot-top">${num(top)}</span>
        <svg width="100%" height=${height} viewBox="0 0 ${rows.length * 10} ${height}" preserveAspectRatio="none" role="img" aria-label=${label}>
          ${rows.map((row, i) => {
            const feet = Array(lanes).fill(0); // base of the next bar of a lane
            for (const { id, lane = 0, nested } of series) if (nested) feet[lane] = Math.max(feet[lane], row[id] ? scale(row[id]) : 0);
            return html`<g key=${row.at}><title>${minute(row.at)} · ${series.map(({ id, label: name }) => `${name} ${num(row[id] || 0)}`).join(' · ')}</title>
              <rect class="hit" x=${i * 10} y="0" width="10" height=${height} />
              ${series.map(({ id, tone, lane = 0, nested }) => {
                if (!row[id]) return null;
                const size = scale(row[id]);
                if (!nested) feet[lane] += size;
                return html`<rect key=${id} class="bar ${tone}" x=${i * 10 + 1 + (lane * 8) / lanes} y=${height - (nested ? size : feet[lane])} width=${8 / lanes} height=${size} />`;
              })}</g>`;
          })}
        </svg>
        ${rows.length > 1 && html`<div class="spread plot-axis"><span>${minute(rows[0].at)}</span><span>${minute(rows[rows.length >> 1].at)}</span><span>${minute(rows.at(-1).at)}</span></div>`}
      </div>`}
  </figure>`;
}

/** A line of values without axes. */
export function Spark({ values, label, width = 80, height = 20 }) {
  const top = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${(height - 1 - (value / top) * (height - 2)).toFixed(1)}`).join(' ');
  return html`<svg class="spark" width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label=${label}><polyline points=${points} /></svg>`;
}

/** A status over time as one bar: spans [{from, to, tone, text}] in milliseconds, coloured and patterned by tone. */
export function Timeline({ label, spans, from, to }) {
  const width = 1000;
  const x = (at) => ((Math.min(Math.max(at, from), to) - from) / (to - from)) * width;
  return html`<svg class="timeline" width="100%" height="28" viewBox="0 0 ${width} 28" preserveAspectRatio="none" role="img" aria-label=${label}>
    <defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="3" height="6" /></pattern>
      <pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse"><circle class="hatch" cx="3" cy="3" r="1.5" /></pattern>
    </defs>
    ${spans.map((span, i) => html`<g key=${i}><title>${span.text || ''} ${full(span.from)}</title>
      <rect class="span ${span.tone}" x=${x(span.from)} y="0" width=${Math.max(1, x(span.to) - x(span.from))} height="28" />
      ${span.tone !== 'good' && html`<rect class="pattern" x=${x(span.from)} y="0" width=${Math.max(1, x(span.to) - x(span.from))} height="28"
        fill=${span.tone === 'bad' ? 'url(#hatch)' : 'url(#dots)'} />`}</g>`)}
  </svg>`;
}
