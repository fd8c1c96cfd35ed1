// The band that says whether phones are real, and the bar below it.
import { html, computed, useState, useRef, useEffect } from '../view.js';
import { texts, clock, duration } from '../i18n.js';
import { api, goneSince, signOut } from '../api.js';
import { live, staleSince, retryLive } from '../live.js';
import { route, go } from '../router.js';
import {
  totals, selected, select, band, shownChannel, faults, masked, paletteOpen, pinned, role, useSecond,
} from '../state.js';
import { Icon } from '../parts/icon.js';
import { IconButton, Button, copyText } from '../parts/button.js';
import { Note } from '../parts/card.js';
import { ChannelPicker } from '../parts/channel_picker.js';
import { keyName, useKeys } from '../keys.js';
import { Results } from './palette.js';

const t = texts('core');

export function Band() {
  const { all = 0, real: n = 0 } = totals.value || {};
  if (band.value === 'plain') return html`<div class="band" />`;
  const sandbox = band.value === 'sandbox';
  const meaning = sandbox ? t('sandboxMeans') : n < all && !shownChannel.value ? t('realSome', { n, all }) : t('realMeans');
  return html`<div class="band ${band.value}" role="region" aria-label=${sandbox ? t('sandbox') : t('real')}>
    <strong>${sandbox ? t('sandbox') : t('real')}</strong> <span>· ${meaning}</span>
    ${faults.value > 0 && html`<span class="band-faults">● ${t('faults')}</span>`}
  </div>`;
}

export function TopBar() {
  useKeys([
    ...(route.value.within ? [['Escape', t('back'), back]] : []),
    ['y', t('copy', { what: 'id' }), copyKey],
  ], 'general');
  return html`<header class="top">
    <a class="brand" href="/console/">Parley</a>
    <div class="picker"><${ChannelPicker} value=${selected.value} onChange=${pick} none=${t('allChannels')} aria-label=${t('channelPicker')}
      archives /></div>
    <button type="button" class="search" ...${Results.near} onClick=${() => { paletteOpen.value = true; }}>
      <${Icon} name="search" /><span>${t('search')}</span>
      <kbd aria-hidden="true">${keyName('mod+k')}</kbd></button>
    <${LiveDot} />
    ${masked.value && html`<${IconButton} icon="hidden" label=${t('maskOff')} pressed onClick=${() => { masked.value = false; }} />`}
    <span class="hide-small"><${IconButton} icon="phone" label=${pinned.value ? t('unpinPhone') : t('pinPhone')} pressed=${pinned.value}
      onClick=${() => { pinned.value = !pinned.value; }} /></span>
    <${Account} />
  </header>`;
}

// While the reader types, Escape must not leave the page and lose the text.
function back({ target }) {
  if (target.matches?.('input, textarea, select')) return false;
  return document.querySelector('main .back')?.click();
}

// The id of the row that has the focus, or that is open.
function copyKey() {
  const row = document.activeElement.closest('tr[data-key]') || document.querySelector('tr[data-key][aria-current=true]');
  return row ? copyText(row.dataset.key, 'id') : false;
}

// On the page of one channel the picker goes to the other channel's page; elsewhere it filters.
function pick(code) {
  if (route.value.name === 'channel') go(code ? `/channels/${code}` : '/channels', { channel: code || null });
  else select(code);
}

// Since when nothing new was heard, by the stream or by a request, whichever noticed first.
const since = computed(() => live.value.state !== 'live' && [goneSince.value, staleSince.value].filter(Boolean).sort((a, b) => a - b)[0]);

// A short break is shown as a countdown, a longer one as stale data.
function LiveDot() {
  const time = useSecond();
  const { state, retryAt } = live.value;
  const old = since.value && time - since.value > 8000;
  const words = state === 'live' ? t('live')
    : state === 'connecting' ? t('connecting')
      : old ? t('stale', { time: clock(since.value) })
        : t('reconnecting', { time: duration(Math.max(0, Math.ceil((retryAt - time) / 1000)) * 1000) });
  return html`<button type="button" class="live ${state === 'live' ? 'on' : old ? 'old' : 'wait'}" data-t="live" onClick=${retryLive}>
    <i aria-hidden="true" /><span>${words}</span></button>`;
}

/** A warning while the server does not respond. */
export function Gone() {
  const time = useSecond();
  useEffect(() => {
    if (live.value.state === 'live' && goneSince.value) api.get('/manage/server').catch(() => {});
  }, [live.value.state, time - (time % 5000)]);
  if (!since.value || time - since.value < 3000) return null;
  const left = live.value.retryAt ? Math.ceil((live.value.retryAt - time) / 1000) : 0;
  return html`<${Note} kind="warn">${left > 0 ? t('gone', { time: clock(since.value), left: duration(left * 1000) })
    : t('goneNow', { time: clock(since.value) })}
    ${' '}<${Button} small onClick=${retryLive}>${t('tryNow')}<//><//>`;
}

function Account() {
  const [open, setOpen] = useState(false);
  const box = useRef();
  useEffect(() => {
    if (!open) return undefined;
    const away = (event) => { if (!box.current.contains(event.target)) setOpen(false); };
    addEventListener('pointerdown', away);
    return () => removeEventListener('pointerdown', away);
  }, [open]);
  const keys = (event) => { if (event.key === 'Escape' && open) { event.stopPropagation(); setOpen(false);
    box.current.querySelector('button').focus(); } };
  return html`<div class="menu-box" ref=${box} onKeyDown=${keys}>
    <${IconButton} icon="user" label=${t('account')} aria-expanded=${String(open)} onClick=${() => setOpen(!open)} />
    ${open && html`<div class="menu">
      ${role.value && html`<p class="menu-note muted">${t('signedInAs', { role: t(`role.${role.value}`) })}</p>`}
      <button type="button" onClick=${() => { masked.value = !masked.value; setOpen(false); }}>
        <${Icon} name=${masked.value ? 'eye' : 'hidden'} />${masked.value ? t('maskOff') : t('maskOn')}</button>
      <button type="button" onClick=${signOut}><${Icon} name="out" />${t('signOut')}</button>
    </div>`}
  </div>`;
}
