// A real table: sorted, selected and walked through by keyboard, and drawn in part when it is long.
// On small screens the same rows are cards.
import { html, useState, useRef, useMemo, useEffect, useLayoutEffect, classes } from '../view.js';
import { useKeys } from '../keys.js';
import { go } from '../router.js';
import { Loading, Failed } from './card.js';
import { Icon } from './icon.js';
import { texts } from '../i18n.js';

const t = texts('core');

const whole = 120; // a list this long is drawn whole: simple, and the browser's own search finds all of it
const spare = 12; // rows drawn above and below what is seen

/**
 * label, rows, columns, rowKey and what to show instead of rows: load (of useLoad) and empty (a vnode).
 * rowHref(row): the address that a row opens. current: the key of the row that is open.
 * drawer: that of useDrawer, which then goes through the rows as they are shown. sort: {id, desc} to begin with.
 * selection: what useSelection returns, if rows can be selected.
 * pure: cells depend on nothing but their row and signals, so rows that did not change are not drawn again.
 * flowing: new rows come all the time. Each place in the list is an element of its own, so that nothing moves.
 * onSort(order): rows come sorted by sort, and this asks for another order; columns that can be sorted have sort: true.
 */
export function Table({ label, rows, columns, rowKey, rowHref, rowClass, drawer, current = drawer?.id, sort, onSort, selection, load, empty,
  pure, flowing, keys = true }) {
  const [own, setOwn] = useState(sort);
  const [order, setOrder] = onSort ? [sort, onSort] : [own, setOwn];
  const [cursor, setCursor] = useState(null);
  const body = useRef();
  const drawn = useRef(new WeakMap()).current; // cells by their row, if they are pure
  const sorted = useMemo(() => (onSort ? rows || [] : arranged(rows || [], columns, order)), [rows, order, columns.length]);
  if (drawer) drawer.order.current = sorted.map(rowKey);
  const part = useWindow(body, sorted.length);
  if (selection) selection.keys = sorted.map(rowKey);

  const at = () => sorted.findIndex((row) => rowKey(row) === cursor);
  const move = (step) => () => {
    if (!sorted.length) return false;
    // Without a cursor yet, begin with what is seen.
    const from = at() < 0 && part.from ? part.from + spare - 1 : at();
    const row = sorted[Math.max(0, Math.min(sorted.length - 1, from + step))];
    setCursor(rowKey(row));
    part.show(sorted.indexOf(row));
    focusRow(body, rowKey(row));
  };
  const open = () => {
    const row = sorted[at()];
    if (!row || !rowHref) return false;
    go(rowHref(row));
  };
  useKeys(keys ? [
    ['j', t('keys.next'), move(1)], ['k', t('keys.previous'), move(-1)], ['ArrowDown', '', inTable(move(1))],
      ['ArrowUp', '', inTable(move(-1))],
    ['Enter', rowHref ? t('keys.open') : '', inTable(open)],
      ...(selection ? [['x', t('keys.select'), () => cursor != null && selection.toggle(cursor)]] : []),
  ] : []);

  if (load?.error && !rows) return html`<${Failed} load=${load} />`;
  if (!rows) return html`<${Loading} rows=${6} />`;
  if (!rows.length && empty) return empty;

  const click = (row) => (event) => {
    setCursor(rowKey(row));
    if (event.shiftKey && selection) { selection.range(rowKey(row)); return; }
    if (!rowHref || event.target.closest('a,button,input,label') || String(getSelection())) return;
    go(rowHref(row));
  };
  const cells = (row) => {
    const link = rowHref?.(row);
    const was = pure && drawn.get(row);
    if (was && was.link === link) return was.vnode;
    const vnode = html`<${Cells} row=${row} columns=${columns} link=${link} />`;
    if (pure) drawn.set(row, { link, vnode });
    return vnode;
  };
  return html`
    <div class=${classes('table-box', part.long && 'long')}>
      <table class="table" role="table" aria-label=${label} aria-rowcount=${sorted.length + 1}>
        <thead role="rowgroup"><tr role="row" aria-rowindex="1">
          ${selection && html`<th role="columnheader" class="pick"><label><input type="checkbox" aria-label=${t('selectAll')}
            checked=${selection.all} indeterminate=${selection.some && !selection.all} onChange=${selection.toggleAll} /></label></th>`}
          ${columns.map((column) => html`<${HeadCell} key=${column.id} column=${column} order=${order} onOrder=${setOrder} />`)}
        </tr></thead>
        <tbody role="rowgroup" ref=${body}>
          ${part.above > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: part.above }} />`}
          ${sorted.slice(part.from, part.to).map((row, i) => {
            const key = rowKey(row);
            return html`<tr key=${flowing ? part.from + i : key} role="row" data-key=${key} aria-rowindex=${part.from + i + 2}
              tabindex=${key === (cursor ?? rowKey(sorted[0])) ? 0 : -1}
              aria-current=${key === current ? 'true' : undefined} class=${classes(rowHref && 'opens', rowClass?.(row))}
                onClick=${click(row)} onFocus=${() => setCursor(key)}>
              ${selection && html`<td role="cell" class="pick" onClick=${swallow}><label>
                <input type="checkbox" aria-label=${t('select', { what: key })} checked=${selection.has(key)}
                onClick=${(event) => { if (event.shiftKey) selection.range(key); else selection.toggle(key); }} /></label></td>`}
              ${cells(row)}
            </tr>`;
          })}
          ${part.below > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: part.below }} />`}
        </tbody>
      </table>
    </div>`;
}

const Cells = ({ row, columns, link }) =>
  columns.map((column, i) => html`<td key=${column.id} role="cell" data-card=${column.card}
    class=${classes(column.align, column.wide && 'wide', column.class)}>${
  i === 0 && link ? html`<a class="row-link" href=${link} tabindex="-1">${column.cell(row)}</a>` : column.cell(row)}</td>`);

function HeadCell({ column, order, onOrder }) {
  const name = classes(column.align, column.wide && 'wide', column.class);
  if (!column.sort) return html`<th role="columnheader" scope="col" class=${name}>${column.label}</th>`;
  const mine = order?.id === column.id;
  const turn = () => onOrder(mine && order.desc ? undefined : { id: column.id, desc: mine });
  return html`<th role="columnheader" scope="col" class=${name} aria-sort=${mine ? (order.desc ? 'descending' : 'ascending') : 'none'}>
    <button type="button" class="sort" onClick=${turn}>${column.label}
      ${mine && html`<${Icon} name=${order.desc ? 'down' : 'up'} size=${12} />`}</button></th>`;
}

function arranged(rows, columns, order) {
  const by = order && columns.find((column) => column.id === order.id)?.sort;
  if (!by) return rows;
  const way = order.desc ? -1 : 1;
  const compare = (a, b) => (typeof a === 'string' && typeof b === 'string' ? a.localeCompare(b, undefined, { numeric: true }) : a < b ? -1
    : a > b ? 1 : 0);
  return rows.map((row) => [by(row) ?? '', row]).sort((a, b) => way * compare(a[0], b[0])).map(([, row]) => row);
}

const swallow = (event) => event.stopPropagation(); // a click beside a checkbox must not open the row

const inTable = (fn) => (event) => (event.target.closest('tbody') ? fn(event) : false);

const focusRow = (body, key) => requestAnimationFrame(() => {
  const row = [...(body.current?.rows || [])].find((tr) => tr.dataset.key === String(key));
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: 'nearest' });
});

// Which rows of a long list to draw. It follows whatever scrolls around the table.
function useWindow(body, count) {
  const long = count > whole;
  const [range, setRange] = useState([0, 60]);
  const height = useRef(37);
  const place = () => {
    if (!body.current) return;
    const row = body.current.querySelector('tr:not(.space)');
    if (row) height.current = row.getBoundingClientRect().height || height.current;
    const top = -body.current.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / height.current) - spare);
    const last = Math.min(count, Math.ceil((top + innerHeight) / height.current) + spare);
    setRange((was) => (was[0] === first && was[1] === last ? was : [first, Math.max(first, last)]));
  };
  const latest = useRef(place);
  latest.current = place;
  useLayoutEffect(() => { if (long) place(); }, [long, count]);
  useEffect(() => {
    if (!long) return undefined;
    const follow = () => latest.current();
    document.addEventListener('scroll', follow, { capture: true, passive: true });
    addEventListener('resize', follow);
    return () => { document.removeEventListener('scroll', follow, { capture: true }); removeEventListener('resize', follow); };
  }, [long]);
  if (!long) return { long, from: 0, to: count, above: 0, below: 0, show() {} };
  const [from, to] = [Math.min(range[0], count), Math.min(range[1], count)];
  return {
    long, from, to, above: from * height.current, below: (count - to) * height.current,
    show(index) {
      if (index < from + spare / 2 || index >= to - spare / 2) setRange([Math.max(0, index - 40), Math.min(count, index + 40)]);
    },
  };
}
