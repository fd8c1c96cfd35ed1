// Chooses a channel by a few letters of its code, name or number. The server searches: there may be thousands.
import { html, useEffect, useId, useRef, useState } from '../view.js';
import { api } from '../api.js';
import { channelBy, addChannels } from '../state.js';
import { texts } from '../i18n.js';
import { ChannelStatus } from './status.js';
import { Field } from './form.js';
import { Icon } from './icon.js';
import { mask } from './who.js';

const t = texts('core');

const most = 20; // offers
const pause = 150; // ms after the last letter

const toName = ({ code, name }) => (name && name !== code ? `${code} · ${mask(name)}` : code);

/**
 * An ARIA combobox. value: a code or ''; onChange(code). none: the words for no channel, which can then be chosen.
 * archives: whether those that only keep history are offered.
 */
export function ChannelPicker({ value, onChange, none, archives, ...rest }) {
  const [text, setText] = useState(null); // null: closed
  const [found, setFound] = useState(null); // {rows, total}
  const [at, setAt] = useState(0);
  const input = useRef();
  const turn = useRef(0);
  const id = useId();
  const open = text !== null;
  const known = channelBy(value);
  const closed = value ? (known ? toName(known) : value) : none || '';

  useEffect(() => {
    if (!open) return undefined;
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const { data, meta } = await api.get('/manage/channels', { query: { search: text.trim(), limit: most } });
        addChannels(data);
        if (mine !== turn.current) return;
        setFound({ rows: data.filter((row) => archives || !row.archive_of), total: meta.total });
        setAt(0);
      } catch { if (mine === turn.current) setFound({ rows: [], total: 0, failed: true }); }
    }, text ? pause : 0);
    return () => clearTimeout(timer);
  }, [text]);

  const rows = found?.rows || [];
  const offers = [...(none && !text ? [{ code: '', name: none }] : []), ...rows];
  const show = () => { if (!open) { setText(''); setAt(0); } };
  const hide = () => { turn.current++; setText(null); setFound(null); };
  const choose = (row) => { hide(); if (row && row.code !== value) onChange(row.code); };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !open) show();
    else if (step && offers.length) {
      const next = (at + step + offers.length) % offers.length;
      setAt(next);
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter' && open) choose(offers[at]);
    else if (event.key === 'Escape' && open) hide();
    else { if (event.key === 'Tab') hide(); return; }
    event.preventDefault();
    event.stopPropagation();
  };
  const more = found && found.total > found.rows.length;
  return html`<div class="channel-picker">
    <input ref=${input} type="text" role="combobox" aria-expanded=${String(open)} aria-controls=${id} aria-autocomplete="list"
      aria-activedescendant=${open && offers[at] ? `${id}-${at}` : undefined}
      autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="100"
        placeholder=${open ? closed || t('picker.search') : t('picker.none')} title=${open ? undefined : closed} data-value=${value}
      ...${rest} value=${open ? text : closed} onClick=${show} onFocus=${(event) => event.target.select()} onBlur=${hide} onKeyDown=${keys}
        onKeyPress=${(event) => { if (event.key === 'Enter') event.preventDefault(); /* it chooses, and sends no form */ }}
      onInput=${(event) => { setText(event.target.value === closed ? '' : event.target.value); setAt(0); }} />
    <${Icon} name="down" size=${14} />
    <div class="offers" hidden=${!open} onMouseDown=${(event) => event.preventDefault()}>
      <ul id=${id} role="listbox" aria-label=${t('page.channels')}>
        ${offers.map((row, i) => html`<li key=${row.code} id="${id}-${i}" role="option" aria-selected=${String(i === at)}
        data-code=${row.code} onMouseDown=${() => choose(row)} onMouseMove=${() => i !== at && setAt(i)}>
        ${row.code ? html`<span class="grow clip"><b>${row.code}</b>
          ${row.name !== row.code && html` <bdi class="muted">${mask(row.name)}</bdi>`}</span>
          ${!row.simulated && html`<span class="live-word">${t('real')}</span>`}<${ChannelStatus} status=${row.status} />`
            : row.name}</li>`)}</ul>
      ${open && html`<p class="picker-note muted" aria-live="polite">${!found ? t('picker.searching') : found.failed ? t('noAnswer')
        : !rows.length ? t('picker.nothing') : more ? t('picker.more', { n: found.total }) : t('picker.found', { n: found.total })}</p>`}
    </div>
  </div>`;
}

/** A form's field for a channel: its value is the code. none: as of ChannelPicker. */
export function ChannelField({ form, name = 'channel', none, ...rest }) {
  return html`<${Field} form=${form} name=${name} label=${t('page.channel')} required=${!none} ...${rest}
    as=${(common, set) => html`<${ChannelPicker} ...${common} value=${form.values[name]} onChange=${set} none=${none} />`} />`;
}
