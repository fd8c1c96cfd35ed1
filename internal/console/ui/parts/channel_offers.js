// The channels that a picker offers. The server searches: there may be thousands.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../view.js';
import { api } from '../api.js';
import { addChannels } from '../state.js';
import { texts } from '../i18n.js';
import { ChannelStatus } from './channel_status.js';
import { mask } from './who.js';

const t = texts('core');

const most = 20; // offers
const pause = 150; // ms after the last letter

/** The list for a text, in which the offer at a place is picked. onOffers(rows) hears what is offered. */
export function Offers({ id, text, none, archives, at, onPick, onOffers, choose }) {
  const [found, setFound] = useState(null); // {rows, total}
  const turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const { data, meta } = await api.get('/manage/channels', { query: { search: text.trim(), limit: most } });
        addChannels(data);
        if (mine !== turn.current) return;
        setFound({ rows: data.filter((row) => archives || !row.archive_of), total: meta.total });
        onPick(0);
      } catch { if (mine === turn.current) setFound({ rows: [], total: 0, failed: true }); }
    }, text ? pause : 0);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => () => { turn.current++; }, []);

  const rows = found?.rows || [];
  const offers = [...(none && !text ? [{ code: '', name: none }] : []), ...rows];
  useLayoutEffect(() => onOffers(offers), [found, !text]);
  const more = found && found.total > found.rows.length;
  return html`<ul id=${id} role="listbox" aria-label=${t('page.channels')}>
      ${offers.map((row, i) => html`<li key=${row.code} id="${id}-${i}" role="option" aria-selected=${String(i === at)}
      data-code=${row.code} onMouseDown=${() => choose(row)} onMouseMove=${() => i !== at && onPick(i)}>
      ${row.code ? html`<span class="grow clip"><b>${row.code}</b>
        ${row.name !== row.code && html` <bdi class="muted">${mask(row.name)}</bdi>`}</span>
        ${!row.simulated && html`<span class="live-word">${t('real')}</span>`}<${ChannelStatus} status=${row.status} />`
          : row.name}</li>`)}</ul>
    <p class="picker-note muted" aria-live="polite">${!found ? t('picker.searching') : found.failed ? t('noAnswer')
      : !rows.length ? t('picker.nothing') : more ? t('picker.more', { n: found.total }) : t('picker.found', { n: found.total })}</p>`;
}
