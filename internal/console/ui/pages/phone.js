// The simulated phones: see what reaches one, and reply from it. The same screen is shown on its own page, in a
// window beside the program under test, and pinned at the right of the other pages.
import { html, useState, useEffect, useLayoutEffect, useRef, signal, classes } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { go, href, setQuery } from '../router.js';
import { channelsLoaded, channelBy, masked, pinned, stored, reloadChannels } from '../state.js';
import { useKeys } from '../keys.js';
import { texts } from '../i18n.js';
import { Head, Empty, Loading, Failed, Card, Note } from '../parts/card.js';
import { Button, IconButton } from '../parts/button.js';
import { Dialog, confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { lazy } from '../parts/lazy.js';
import { Face } from '../parts/face.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { AsCode } from '../parts/as_code.js';
import { phone, number, mask } from '../parts/who.js';
import { usePhones, stranger, toName } from './phone_list.js';
import { Chat } from './phone_chat.js';
import { toast } from '../parts/toast.js';

const t = texts('phone');
const Chats = lazy(() => import('./phone_chats.js').then((module) => module.Chats), 3);
const NewPhone = lazy(() => import('./phone_new.js').then((module) => module.NewPhone), 3);

const mostFaces = 30; // the rest is found by typing
const held = stored('phone', {}); // {number, to}: the phone used last
const notify = signal(false); // whether to show desktop notifications
const fresh = signal(new Set()); // numbers with something new since they were looked at

export default function Page({ route: { params, query } }) {
  const phones = usePhones(query.to);
  const digits = number(params.number) || held.value.number || phones.faces[0]?.number;
  const to = phones.shown.includes(query.to) ? query.to : '';
  const alone = Boolean(query.window);
  useEffect(() => { if (digits) held.value = { number: digits, to }; }, [digits, to]);
  if (channelsLoaded.value && !phones.shown.length) return html`<${Head} title=${t('phone')} /><${NoSandbox} />`;
  const pick = ({ number: next = digits, to: chat }) => go(`/phone/${next}`, { to: chat, window: query.window });
  const screen = html`<${Screen} phones=${phones} digits=${digits} to=${to} alone=${alone} onPick=${pick} draft=${query.text}
    onDraftSent=${() => setQuery({ text: null }, { replace: true })} />`;
  if (alone) return html`<h1 class="sr">${t('phone')}</h1>${screen}`;
  const channel = toChat(phones, digits, to) || phones.find(digits)?.channel || phones.shown[0];
  const device = digits && channel && (phones.find(digits, channel) || stranger(digits, channel));
  return html`<${Head} title=${t('phone')} lead=${device && lead(device)} />
    <${Faces} phones=${phones} digits=${digits} />
    <${Below}>${screen}
      ${device && html`<div class="stack">
        <${PhoneBehaviour} key=${channel + digits} channel=${channel} device=${device} onChange=${phones.load.reload} />
        <${NetworkBehaviour} key=${channel} channel=${channel} device=${device} />
      </div>`}<//>`;
}

function lead(device) {
  const state = !device.on_network ? 'off' : device.blocks ? 'blocks' : !device.online ? 'offline' : device.name ? 'online' : 'nameless';
  return t(`lead.${state}`, { name: device.name ? toName(device) : t('thisPhone'), number: mask(phone(device.number)) });
}

/** Knows how far down the page it begins, so that the phone in it ends with the window. */
function Below({ children }) {
  const box = useRef();
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => box.current?.style.setProperty('--above',
      `${box.current.getBoundingClientRect().top + scrollY}px`));
    for (let one = box.current.previousElementSibling; one; one = one.previousElementSibling) watch.observe(one);
    return () => watch.disconnect();
  }, []);
  return html`<div class="phone-page" ref=${box}>${children}</div>`;
}

/** The chat that is open: the one in the address, or the only one. */
const toChat = (phones, digits, to) => to || (phones.shown.length === 1 ? phones.shown[0] : phones.channels(digits).length === 1
  ? phones.channels(digits)[0] : '');

const NoSandbox = () => html`<${Empty} icon="phone" title=${t('noSandbox')} text=${t('noSandboxText')}>
  <${Button} kind="primary" href=${href('/channels', { new: 'sandbox' })}>${t('createSandbox')}<//><//>`;

/** The phone that is pinned beside other pages. */
export function PhonePanel({ docked }) {
  const { number: last, to: chat } = held.value;
  const phones = usePhones(chat);
  const digits = last || phones.faces[0]?.number;
  if (channelsLoaded.value && !phones.shown.length) return html`<${NoSandbox} />`;
  return html`<${Screen} docked=${docked} phones=${phones} digits=${digits} to=${phones.shown.includes(chat) ? chat : ''}
    onPick=${({ number: next = digits, to }) => { held.value = { number: next, to }; }} />`;
}

/** What one holds in the hand: whose phone it is, and its chats or one of them. */
function Screen({ phones, digits, to, docked, alone, onPick, draft, onDraftSent }) {
  const [more, setMore] = useState(false);
  const channel = toChat(phones, digits, to);
  const device = digits && (phones.find(digits, channel) || stranger(digits, channel || phones.shown[0]));
  useNews(phones, digits);
  if (!phones.list || !device) return html`<section class="screen">${phones.load.error ? html`<${Failed} load=${phones.load} />`
    : html`<${Loading} rows=${5} />`}</section>`;
  const popOut = () => window.open(href(`/phone/${digits}`, { to: channel, window: 1 }), `parley-phone-${digits}`,
    'popup,width=390,height=780');
  const hasMore = phones.shown.length > 1;
  return html`<section class=${classes('screen', docked && 'docked', alone && 'alone')}
    aria-label=${t('phoneOf', { name: toName(device) })}>
    <header class="screen-head">
      ${channel && hasMore && html`<${IconButton} icon="left" label=${t('chats')} onClick=${() => onPick({ to: null })} />`}
      <${DeviceFace} device=${device} />
      <div class="grow">${docked || alone
        ? html`<label><span class="sr">${t('phone')}</span>
          <select value=${digits} onChange=${(event) => onPick({ number: event.target.value, to })}>
          ${[...phones.faces.slice(0, 200), ...(phones.find(digits) ? [] : [device])].map((one) =>
            html`<option key=${one.number} value=${one.number} selected=${one.number === digits}>${toName(one)}</option>`)}
            </select></label>`
        : html`<h2 class="clip"><bdi>${toName(device)}</bdi></h2>`}
        <p class="muted clip">${t(device.online && device.on_network ? 'online' : 'offline')}
          ${channel && html` · ${t('chatWith', { channel: mask(channelBy(channel)?.name || channel) })}`}</p></div>
      <${Notify} />
      ${!alone && html`<${IconButton} icon="window" label=${t('ownWindow')} onClick=${popOut} />`}
      ${(docked || alone) && html`<${IconButton} icon="more" label=${t('behaviours')} onClick=${() => setMore(true)} />`}
      ${docked ? html`<${IconButton} icon="close" label=${t('unpin')} onClick=${() => { pinned.value = false; }} />`
        : !alone && html`<span class="hide-small"><${IconButton} icon="pin" label=${t('pin')} pressed=${pinned.value}
          onClick=${() => { pinned.value = !pinned.value; }} /></span>`}
    </header>
    ${channel ? html`<${Chat} key=${channel + digits} channel=${channel} device=${device} draft=${draft} onDraftSent=${onDraftSent} />`
      : html`<${Chats} phones=${phones} digits=${digits} onPick=${onPick} />`}
    <${Dialog} wide open=${more} title=${t('behaviours')} onClose=${() => setMore(false)}>
      <${PhoneBehaviour} channel=${device.channel} device=${device} onChange=${phones.load.reload} />
        <${NetworkBehaviour} channel=${device.channel} device=${device} /><//>
  </section>`;
}

const DeviceFace = ({ device }) => html`<${Face} id=${device.number} name=${device.name} away=${!(device.online && device.on_network)} />`;

function Faces({ phones, digits }) {
  const [wanted, setWanted] = useState('');
  const [making, setMaking] = useState(false);
  const row = useRef();
  useEffect(() => row.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [digits, phones.faces.length]);
  useKeys([['n', t('newPhone'), () => setMaking(true), 'support']]);
  const text = wanted.trim().toLowerCase();
  const current = phones.faces.find((one) => one.number === digits);
  const matching = text ? phones.faces.filter((one) => one.name.toLowerCase()
    .includes(text) || one.number.includes(text.replace(/\D/g, '') || '?')) : phones.faces;
  const first = matching.slice(0, mostFaces);
  const faces = !text && current && !first.includes(current) ? [current, ...first] : first;
  return html`<div class="faces">
    <nav aria-label=${t('phones')} ref=${row}>
      ${faces.map((one) => html`<a key=${one.number} href=${href(`/phone/${one.number}`)}
        aria-current=${one.number === digits ? 'page' : undefined}>
      <${DeviceFace} device=${one} /><span class="clip" title=${mask(phone(one.number))}>
        ${one.name ? mask(one.name) : `…${mask(one.number.slice(-6))}`}</span>
        ${fresh.value.has(one.number) && one.number !== digits && html`<i class="news"><span class="sr">${t('unread')}</span></i>`}
        </a>`)}</nav>
    <button type="button" class="new-face" ...${NewPhone.near} onClick=${() => setMaking(true)}><span class="face plus" aria-hidden="true">
      <${Icon} name="plus" /></span><span>${t('newPhone')}</span></button>
    ${phones.faces.length > mostFaces && html`<label class="filter"><${Icon} name="search" /><span class="sr">${t('findPhone')}</span>
      <input type="search" data-search placeholder=${t('findPhone')} value=${wanted}
        onInput=${(event) => setWanted(event.target.value)} /></label>`}
    <${Dialog} open=${making} title=${t('newPhone')} onClose=${() => setMaking(false)}>
      <${NewPhone} channel=${phones.shown[0]} phones=${phones} close=${() => setMaking(false)} /><//>
  </div>`;
}

// Messages to other phones mark them, and show a desktop notification if enabled.
function useNews(phones, digits) {
  useEffect(() => { if (fresh.value.has(digits)) fresh.value = new Set([...fresh.value].filter((one) => one !== digits)); }, [digits]);
  useEvents(['message.status'], (events) => {
    for (const { channel, data } of events) {
      if (data.status !== 'SENT' || !phones.shown.includes(channel)) continue;
      const to = number(data.contact_id);
      if (to !== digits) fresh.value = new Set([...fresh.value, to]);
      if (notify.value && document.hidden) new Notification(toName(phones.find(to) || stranger(to)),
        { body: mask(data.body), tag: data.message_id });
    }
  });
}

function Notify() {
  if (!('Notification' in window)) return null;
  const toggle = async () => { notify.value = !notify.value && await Notification.requestPermission() === 'granted'; };
  return html`<${IconButton} icon="bell" label=${t('notify')} pressed=${notify.value} onClick=${toggle} />`;
}

// How a phone behaves, and what goes wrong on the network when somebody asks for it.

const flags = ['online', 'blocks', 'on_network', 'number_hidden'];

/** Each change counts at once. onChange is called after it. */
export function PhoneBehaviour({ channel, device, onChange }) {
  const path = `/sandbox/phones/${device.number}`;
  const [last, setLast] = useState({ online: !device.online });
  const [errors, setErrors] = useState({});
  const [typed, setTyped] = useState({}); // and not left yet
  const set = async (name, value) => {
    const body = { [name]: value };
    setLast(body);
    setErrors({});
    try { await api.patch(path, body, { channel }); } catch (error) {
      setErrors(error.errors);
      toast(error.message, { kind: 'bad' });
    }
    await onChange();
    setTyped({});
  };
  const form = { values: { ...device, name: mask(device.name), ...typed }, errors, set };
  const text = (name) => ({
    form: { ...form, set: (_, value) => setTyped({ ...typed, [name]: value }) },
    name, label: t(`trait.${name}`), onChange: ({ target }) => set(name, name === 'name' ? target.value : Number(target.value)),
  });
  return html`<${Card} title=${t('behaviour')}
    actions=${html`<${AsCode} small request=${{ method: 'PATCH', path: `/api${path}`, headers: { 'X-Channel': channel }, body: last }} />`}>
    <div class="form">
      ${flags.map((name) => html`<${Field} key=${name} form=${form} name=${name} type="checkbox" label=${t(`trait.${name}`)} />`)}
      <${Field} form=${form} name="reads" type="select" label=${t('trait.reads')}
        options=${['at_once', 'when_open', 'never'].map((value) => [value, t(`reads.${value}`)])} />
      <${Field} ...${text('delay_ms')} type="number" min="0" max="60000" step="100" />
      <${Field} ...${text('name')} maxlength="100" readonly=${masked.value} />
    </div>
  <//>`;
}

const kinds = ['refuse', 'late', 'twice', 'drop_socket', 'log_out', 'reachout_limit', 'unknown', 'window_closed',
  'template_paused', 'held_back', 'passkey'];

/** Faults for the next sends of a channel, and those that still wait. */
export function NetworkBehaviour({ channel, device }) {
  const waiting = useLoad(() => api.get('/sandbox/faults', { channel }), [channel], { on: ['message.status', 'channel.status'] });
  const refresh = () => Promise.all([waiting.reload(), reloadChannels()]);
  const toBody = ({ fault, times, mine, reason }) =>
    ({ fault, times: Number(times), ...(mine && { to: device.number }), ...(fault === 'refuse' && reason && { reason }) });
  const form = useForm({ fault: 'refuse', times: 1, mine: true, reason: '' }, async (values) => {
    await api.post('/sandbox/faults', toBody(values), { channel });
    await refresh();
  });
  const list = waiting.data?.data || [];
  const clear = async () => { await api.del('/sandbox/faults', { channel }); await refresh(); };
  const reset = async () => {
    if (!await confirm({ title: t('reset'), text: t('resetText', { channel }), action: t('reset'), danger: true })) return;
    await api.del('/sandbox', { channel });
    location.reload();
  };
  return html`<${Card} title=${t('network')}
    actions=${html`<${AsCode} small
      request=${{ method: 'POST', path: '/api/sandbox/faults', headers: { 'X-Channel': channel }, body: toBody(form.values) }} />`}>
    ${list.length > 0 && html`<${Note} kind="bad" title=${t('faultsOn')}>
      <ul>${list.map((fault, i) => html`<li key=${i}>${t('faultWaits', { what: t(`fault.${fault.fault}`), n: fault.times })}
        ${fault.to && ` → ${mask(phone(fault.to))}`}</li>`)}</ul>
      <${Button} need="operator" small onClick=${clear}>${t('faultsOff')}<//><//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="fault" type="select" label=${t('fault')} options=${kinds.map((kind) => [kind, t(`fault.${kind}`)])} />
      ${form.values.fault === 'refuse' && html`<${Field} form=${form} name="reason" label=${t('reason')} maxlength="200" />`}
      <${Field} form=${form} name="times" type="number" label=${t('times')} min="1" max="1000" />
      <${Field} form=${form} name="mine" type="checkbox" label=${t('onlyThis')} />
      <div class="row"><${Submit} need="operator" form=${form} kind="danger">${t('tryFailure')}<//>
        <${Button} need="operator" kind="quiet" onClick=${reset}>${t('reset')}<//></div>
    <//>
  <//>`;
}
