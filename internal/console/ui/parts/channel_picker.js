// Chooses a channel by a few letters of its code, name or number. What it offers is fetched when it opens.
import { html, useId, useRef, useState } from '../view.js';
import { channelBy } from '../state.js';
import { texts } from '../i18n.js';
import { Icon } from './icon.js';
import { lazy } from './lazy.js';
import { mask } from './who.js';

const t = texts('core');
const Offers = lazy(() => import('./channel_offers.js').then((module) => module.Offers));

const toName = ({ code, name }) => (name && name !== code ? `${code} · ${mask(name)}` : code);

/**
 * An ARIA combobox. value: a code or ''; onChange(code). none: the words for no channel, which can then be chosen.
 * archives: whether those that only keep history are offered.
 */
export function ChannelPicker({ value, onChange, none, archives, ...rest }) {
  const [text, setText] = useState(null); // null: closed
  const [offers, setOffers] = useState([]);
  const [at, setAt] = useState(0);
  const input = useRef();
  const id = useId();
  const open = text !== null;
  const known = channelBy(value);
  const closed = value ? (known ? toName(known) : value) : none || '';

  const show = () => { if (!open) { setText(''); setAt(0); } };
  const hide = () => { setText(null); setOffers([]); };
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
  return html`<div class="channel-picker" ...${Offers.near}>
    <input ref=${input} type="text" role="combobox" aria-expanded=${String(open)} aria-controls=${id} aria-autocomplete="list"
      aria-activedescendant=${open && offers[at] ? `${id}-${at}` : undefined}
      autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="100"
        placeholder=${open ? closed || t('picker.search') : t('picker.none')} title=${open ? undefined : closed} data-value=${value}
      ...${rest} value=${open ? text : closed} onClick=${show} onFocus=${(event) => event.target.select()} onBlur=${hide} onKeyDown=${keys}
        onKeyPress=${(event) => { if (event.key === 'Enter') event.preventDefault(); /* it chooses, and sends no form */ }}
      onInput=${(event) => { setText(event.target.value === closed ? '' : event.target.value); setAt(0); }} />
    <${Icon} name="down" size=${14} />
    <div class="offers" hidden=${!open} onMouseDown=${(event) => event.preventDefault()}>
      ${open && html`<${Offers} id=${id} text=${text} none=${none} archives=${archives} at=${at} onPick=${setAt} onOffers=${setOffers}
        choose=${choose} />`}
    </div>
  </div>`;
}
