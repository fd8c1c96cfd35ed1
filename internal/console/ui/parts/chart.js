// Charts in SVG. Each can be read as a table or as words.
import { html, useState, useRef } from '../view.js';
import { texts, num, clock, day, full } from '../i18n.js';
import { IconButton } from './button.js';

const t = texts('core');

// Every chart has the same parts: a legend with values, a vertical axis, a table, and a cursor for the pointer and the arrow keys.

const spiky = 12; // a highest value of so many times the middle one would flatten all others

/** The next round number: what it is divided by for the labels of the axis stays whole. */
function roundUp(n, steps) {
  for (let unit = 1; ; unit *= 10) {
    const found = steps.find((step) => step * unit >= n);
    if (found) return found * unit;
  }
}

/** The axis: its top, where a value is on it (0 to 1), and the values of its labels. With a spike it is the square root. */
export function toAxis(values) {
  const some = values.filter((value) => value > 0).sort((a, b) => a - b);
  const max = some.at(-1) || 0;
  const root = max > spiky * (some[some.length >> 1] || max);
  const top = roundUp(max, root ? [16, 32, 48, 80, 112] : [4, 8, 12, 20, 40, 60]);
  const at = (n) => (root ? Math.sqrt(n / top) : n / top);
  return { top, root, at, labels: root ? [top / 16, top / 4, (9 * top) / 16, top] : [top / 4, top / 2, (3 * top) / 4, top] };
}

/**
 * Figures over time: series [{id, label, tone, stack, nested, value(row)}], rows [{at, <id>: n, …}] from old to new, step in ms.
 * kind 'bars': series of one stack are drawn on each other; nested ones are drawn in front of each other, because each counts a part of
 * the one before (what was read was sent). Lanes are side by side. kind 'lines': a row without a value is a gap.
 * totals: what the legend says of a series while no time is chosen; without it the sum.
 */
export function Plot({ label, series, rows, step, kind = 'bars', format = num, totals, height = 132, empty }) {
  const [asTable, setAsTable] = useState(false);
  const [cursor, setCursor] = useState(null);
  const value = (one, row) => (one.value ? one.value(row) : row[one.id]) ?? null;
  const sum = (one) => rows.reduce((total, row) => total + (value(one, row) || 0), 0);
  const isBlank = rows.every((row) => series.every((one) => !value(one, row)));
  const time = (at) => toTime(at, step);
  const picked = cursor == null ? null : rows[Math.min(cursor, rows.length - 1)];
  const shown = (one) => format(picked ? value(one, picked) : totals ? totals[one.id] : sum(one));
  return html`<figure class="chart" aria-label=${label}>
    <div class="spread"><ul class="legend">
      ${series.map((one) => html`<li key=${one.id}><i class="swatch ${one.tone}" />${one.label} <b>${shown(one)}</b></li>`)}
      <li class="legend-time">${picked && time(picked.at)}</li></ul>
      <${IconButton} icon="table" label=${t('asTable')} pressed=${asTable} onClick=${() => setAsTable(!asTable)} /></div>
    ${asTable ? html`<${AsTable} label=${label} series=${series} rows=${rows} value=${value} format=${format} time=${time} />`
      : isBlank ? html`<p class="plot-empty muted">${empty || t('noFigures')}</p>`
        : html`<${Drawing} ...${{ label, series, rows, kind, format, height, value, time, cursor, setCursor }} />`}
  </figure>`;
}

const AsTable = ({ label, series, rows, value, format, time }) =>
  html`<div class="table-scroll" tabindex="0" role="region" aria-label=${label}><table class="table plain">
  <thead><tr><th scope="col">${t('time')}</th>${series.map((one) => html`<th key=${one.id} scope="col" class="end">${one.label}</th>`)}
    </tr></thead>
  <tbody>${rows.filter((row) => series.some((one) => value(one, row))).reverse()
    .map((row) => html`<tr key=${row.at}><td>${time(row.at)}</td>
      ${series.map((one) => html`<td key=${one.id} class="end">${format(value(one, row))}</td>`)}</tr>`)}</tbody></table></div>`;

function Drawing({ label, series, rows, kind, format, height, value, time, cursor, setCursor }) {
  const box = useRef();
  const columns = kind === 'bars' ? stacked(series, rows, value)
    : series.map((one) => rows.map((row) => { const n = value(one, row); return n == null ? null : [0, n]; }));
  const axis = toAxis(columns.flatMap((column) => column.map((part) => part?.[1] || 0)));
  const stacks = 1 + Math.max(...series.map(({ stack = 0 }) => stack));
  const y = (n) => (height - axis.at(n) * height).toFixed(1);
  const point = (event) => {
    const { left, width } = box.current.getBoundingClientRect();
    setCursor(Math.max(0, Math.min(rows.length - 1, Math.floor(((event.clientX - left) / width) * rows.length))));
  };
  const key = (event) => {
    const last = rows.length - 1;
    const to = { ArrowLeft: (cursor ?? last + 1) - 1, ArrowRight: (cursor ?? last - 1) + 1, Home: 0, End: last,
      PageUp: (cursor ?? last) - 12, PageDown: (cursor ?? last) + 12 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setCursor(Math.max(0, Math.min(last, to)));
  };
  const row = rows[cursor ?? rows.length - 1] || rows.at(-1);
  const said = `${time(row.at)}: ${series.map((one) => `${one.label} ${format(value(one, row))}`).join(', ')}`;
  return html`<div class="plot"><div class="plot-y" aria-hidden="true">
    ${axis.labels.map((n) => html`<span key=${n} style=${{ top: `${(1 - axis.at(n)) * height}px` }}>${format(n)}</span>`)}</div>
    <div class="plot-area" ref=${box} tabindex="0" role="slider" aria-label=${label} aria-orientation="horizontal" aria-valuemin="0"
      aria-valuemax=${rows.length - 1} aria-valuenow=${cursor ?? rows.length - 1} aria-valuetext=${said}
      onPointerMove=${point} onPointerDown=${point} onPointerLeave=${() => setCursor(null)} onKeyDown=${key}
        onBlur=${() => setCursor(null)}>
      <svg width="100%" height=${height} viewBox="0 0 ${rows.length * 10} ${height}" preserveAspectRatio="none" aria-hidden="true">
        ${axis.labels.map((n) => html`<line key=${n} class="grid-line" x1="0" x2=${rows.length * 10} y1=${y(n)} y2=${y(n)} />`)}
        ${cursor != null && html`<rect class="cursor" x=${cursor * 10} y="0" width="10" height=${height} />`}
        ${series.map((one, s) => html`<path key=${one.id} class="${kind === 'bars' ? 'bar' : 'curve'} ${one.tone}"
          d=${kind === 'bars' ? barPath(columns[s], y, (one.stack || 0) * (8 / stacks), 8 / stacks) : linePath(columns[s], y)} />`)}
      </svg>
    </div>
    <div class="spread plot-axis"><span>${time(rows[0].at)}</span><span>${time(rows[rows.length >> 1].at)}</span><span>
      ${time(rows.at(-1).at)}</span></div>
    ${axis.root && html`<p class="plot-note">${t('rootScale')}</p>`}
  </div>`;
}

/** For each series the [from, to] of its bars. Nested ones begin at the foot, the others on what is below them in their stack. */
function stacked(series, rows, value) {
  const feet = rows.map(() => []);
  for (const one of series.filter(({ nested }) => nested)) rows.forEach((row, i) =>
    { feet[i][one.stack || 0] = Math.max(feet[i][one.stack || 0] || 0, value(one, row) || 0); });
  return series.map((one) => rows.map((row, i) => {
    const n = value(one, row) || 0;
    if (one.nested) return [0, n];
    const from = feet[i][one.stack || 0] || 0;
    feet[i][one.stack || 0] = from + n;
    return [from, from + n];
  }));
}

// A bar is never so low that it is not seen.
const barPath = (column, y, offset, width) =>
  column.map(([from, to], i) => (to > from
    ? `M${(i * 10 + 1 + offset).toFixed(1)} ${y(from)}h${width.toFixed(1)}V${Math.min(y(to), y(from) - 1.5)}h-${width.toFixed(1)}z`
    : '')).join('');

// A value between two gaps is a short line.
function linePath(column, y) {
  return column.map((part, i) => {
    if (!part) return '';
    const alone = !column[i - 1] && !column[i + 1];
    return column[i - 1] ? `L${i * 10 + 5} ${y(part[1])}` : `M${i * 10 + (alone ? 1 : 5)} ${y(part[1])}${alone ? 'h8' : ''}`;
  }).join('');
}

/** A step shorter than an hour is said by the clock, a longer one with its day. */
const toTime = (at, step) => (step < 3_600_000 ? clock(at).slice(0, 5) : `${day(at)} ${clock(at).slice(0, 5)}`);

/** A status over time as one bar: spans [{from, to, tone, text}] in milliseconds, coloured and patterned by tone. */
export function Timeline({ label, spans, from, to }) {
  const width = 1000;
  const x = (at) => ((Math.min(Math.max(at, from), to) - from) / (to - from)) * width;
  // A short drop-out is widened so that it can be seen; what is well is drawn first, below it.
  const wide = ({ tone, from: began, to: ended }) => Math.max(tone === 'good' ? 1 : 6, x(ended) - x(began));
  const left = (span) => Math.min(x(span.from), width - wide(span));
  const shown = spans.filter((span) => span.to >= from).toSorted((a, b) => (b.tone === 'good') - (a.tone === 'good'));
  return html`<svg class="timeline" width="100%" height="28" viewBox="0 0 ${width} 28" preserveAspectRatio="none" role="img"
    aria-label=${label}>
    <defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="hatch" width="3" height="6" /></pattern>
      <pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse"><circle class="hatch" cx="3" cy="3" r="1.5" /></pattern>
    </defs>
    ${shown.map((span, i) => html`<g key=${i}><title>${span.text || ''} ${full(span.from)}</title>
      <rect class="span ${span.tone}" x=${left(span)} y="0" width=${wide(span)} height="28" />
      ${span.tone !== 'good' && html`<rect class="pattern" x=${left(span)} y="0" width=${wide(span)} height="28"
        fill=${span.tone === 'bad' ? 'url(#hatch)' : 'url(#dots)'} />`}</g>`)}
  </svg>`;
}
