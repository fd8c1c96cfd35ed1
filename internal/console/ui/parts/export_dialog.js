// Exports rows as a file, and shows how far it is.
import { html, useEffect, useRef, useState } from '../view.js';
import { api } from '../api.js';
import { texts } from '../i18n.js';
import { Button } from './button.js';
import { Dialog } from './dialog.js';
import { toast } from './toast.js';

const t = texts('export');
const core = texts('core');
const formats = ['csv', 'jsonl'];

export function ExportDialog({ what, path, query, onClose }) {
  const [format, setFormat] = useState('csv');
  const [most, setMost] = useState(null);
  const [rows, setRows] = useState(null);
  const abort = useRef(null);
  useEffect(() => {
    api.open('HEAD', path, { query }).then(({ headers }) => setMost(Number(headers.get('Parley-Rows-At-Most'))))
      .catch((error) => toast(error.message, { kind: 'bad' }));
    return () => abort.current?.abort();
  }, []);
  const start = async () => {
    abort.current = new AbortController();
    try {
      const answer = await api.open('GET', path, { query: { ...query, format }, signal: abort.current.signal });
      const { parts, n } = await read(answer.body.getReader(), format === 'csv', setRows);
      save(new Blob(parts, { type: answer.headers.get('Content-Type') }), answer.headers.get('Content-Disposition'));
      toast(t('done', { n }), { kind: 'good' });
      onClose();
    } catch (error) {
      setRows(null);
      if (error.name !== 'AbortError') throw error;
    }
  };
  return html`<${Dialog} open title=${t('title', { what })} onClose=${onClose} foot=${html`
      <${Button} onClick=${() => (rows === null ? onClose() : abort.current.abort())}>${rows === null ? core('cancel') : t('stop')}<//>
      <${Button} kind="primary" icon="download" onClick=${start}>${t('start')}<//>`}>
    <p>${t('lead')}</p>
    <div class="row" role="radiogroup" aria-label=${t('format')}>
      ${formats.map((one) => html`<label key=${one} class="row nowrap"><input type="radio" name="export-format" value=${one}
      checked=${one === format} disabled=${rows !== null} onChange=${() => setFormat(one)} /> ${t(one)}</label>`)}</div>
    <p role="status" class="muted">${rows !== null ? t('running', { n: rows, all: most ?? '…' }) : most === null ? t('counting')
      : t('most', { n: most })}</p>
    ${rows !== null && html`<progress max=${Math.max(most || 0, rows, 1)} value=${rows} aria-label=${t('progress')} />`}
  <//>`;
}

const quote = 34;
const newline = 10;

// Counts lines as they come. In CSV a line break inside quotes is part of a cell, and the first line has the names.
async function read(reader, csv, onRows) {
  const parts = [];
  let quoted = false;
  let lines = 0;
  const count = () => Math.max(0, lines - (csv ? 1 : 0));
  onRows(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { parts, n: count() };
    for (const byte of value) {
      if (csv && byte === quote) quoted = !quoted;
      else if (byte === newline && !quoted) lines += 1;
    }
    parts.push(value);
    onRows(count());
  }
}

function save(blob, disposition) {
  const url = URL.createObjectURL(blob);
  const download = /filename="([^"]+)"/.exec(disposition)?.[1] || 'export';
  Object.assign(document.createElement('a'), { href: url, download }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
