// All channels: which need attention, and bulk actions.
import { html, useEffect, useMemo, useRef, useState, useSignal } from '../view.js';
import { useLoad, api } from '../api.js';
import { href, query, setQuery, go } from '../router.js';
import { channels, channelsLoaded, reloadChannels, selected, now, server, may } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, num, clock, day, full, isToday } from '../i18n.js';
import { Head, Empty } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/code.js';
import { Icon } from '../parts/icon.js';
import { Badge, ChannelStatus, channelTone, urgency } from '../parts/status.js';
import { Who, mask } from '../parts/who.js';
import { confirm, Dialog } from '../parts/dialog.js';
import { say } from '../parts/toast.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';

const t = texts('channels');
const core = texts('core');

const every = 30_000; // how often the counts are asked for again; statuses come by themselves

export default function Page() {
  const load = useLoad(reloadChannels, [now.value - (now.value % every)]);
  const all = channelsLoaded.value ? channels.value : undefined;
  const { status = '', q = '' } = query.value;
  const found = useMemo(() => all?.filter((row) => (!selected.value || row.code === selected.value) && matches(row, q.toLowerCase())), [all, selected.value, q]);
  const shown = useMemo(() => (status ? found?.filter((row) => row.status === status) : found), [found, status]);
  const box = useRef();
  const [rows, moved, arrange] = useOrder(shown, status + q + selected.value, box);
  const picked = useSignal(new Set());
  const results = useSignal(new Map());
  // What is not seen any more must not be stopped by mistake.
  useEffect(() => { if (picked.value.size) picked.value = new Set(); }, [status, q, selected.value]);
  const make = (network) => () => setQuery({ new: network });
  useKeys([['n', t('new'), make('sandbox'), 'operator']]);

  const empty = all?.length ? html`<${Empty} title=${t('noMatch')}><${Button} onClick=${() => setQuery({ status: null, q: null, channel: null })}>${t('clear')}<//><//>`
    : html`<${Empty} icon="channels" title=${t('none')} text=${t('noneText')}>
        <${Button} need="operator" kind="primary" onClick=${make('sandbox')}>${t('newSandbox')}<//><${Button} need="operator" onClick=${make('whatsapp')}>${t('newWhatsApp')}<//><//>`;
  return html`
    <${Head} title=${core('page.channels')} lead=${all && lead(all)} actions=${html`
      <${AsCode} request=${{ path: '/api/manage/channels' }} /><${Button} need="operator" kind="primary" icon="plus" onClick=${make('sandbox')}>${t('new')}<//>`} />
    ${all?.length > 0 && html`<${Filters} rows=${found} status=${status} q=${q} moved=${moved} arrange=${arrange} />`}
    <${Bulk} picked=${picked} results=${results} rows=${rows} />
    <div class="channel-table" ref=${box}><${Table} label=${core('page.channels')} load=${load} rows=${rows} rowKey=${(row) => row.code} rowHref=${(row) => href(`/channels/${row.code}`)}
      selection=${may('operator') ? picked : undefined} sort=${{ id: 'status' }} columns=${columns(results)} empty=${empty} /></div>
    <${NewChannel} />`;
}

const needsYou = (row) => channelTone[row.status] === 'bad' || row.status === 'SCAN_QR_CODE';

function lead(all) {
  const n = all.filter(needsYou).length;
  return n ? t('attention', { n }) : all.length ? t('allClear', { n: all.length }) : '';
}

const matches = (row, words) => !words || [row.code, row.name, row.number, `+${row.number}`, row.network, row.reason].some((text) => text?.toLowerCase().includes(words))
  || (/^[\d\s+()-]{4,}$/.test(words) && row.number?.includes(words.replace(/\D/g, '')));

// Channels that need attention come first, then those with failed sends.
const need = (row) => urgency[row.status] * 4 - (row.restricted_until ? 2 : 0) - (row.failed_24h ? 1 : 0);
const byNeed = (a, b) => need(a) - need(b) || (a.code < b.code ? -1 : 1);

/**
 * The rows by urgency. A changed status does not move its row while the reader uses the table. Returns
 * [rows with their position, whether the order is outdated, a function that sorts again].
 */
function useOrder(rows, filter, box) {
  const [, redraw] = useState(0);
  const kept = useRef({});
  const fresh = useMemo(() => rows && [...rows].sort(byNeed), [rows]);
  const arrange = () => { kept.current = {}; redraw((n) => n + 1); };
  if (fresh && kept.current.filter !== filter) kept.current = { filter, place: new Map(fresh.map((row, i) => [row.code, i])) };
  const { place } = kept.current;
  const list = useMemo(() => fresh?.map((row) => ({ ...row, place: place.get(row.code) ?? -1 })), [fresh, place]);
  const moved = list?.some((row, i) => i && row.place < list[i - 1].place);
  useEffect(() => { if (moved && !box.current?.matches(':hover,:focus-within')) arrange(); }, [moved]);
  return [list, moved, arrange];
}

function Filters({ rows, status, q, moved, arrange }) {
  const counts = useMemo(() => rows.reduce((all, row) => ({ ...all, [row.status]: (all[row.status] || 0) + 1 }), {}), [rows]);
  const names = Object.keys(urgency).filter((name) => counts[name] || name === status);
  const chip = (name, label, n) => html`<button key=${name} type="button" class="chip" aria-pressed=${String(status === name)} onClick=${() => setQuery({ status: status === name ? null : name })}>
    ${label} <span class="count">${num(n)}</span></button>`;
  return html`<div class="spread channel-filters">
    <div class="chips" role="group" aria-label=${t('byStatus')}>${chip('', t('all'), rows.length)}${names.map((name) => chip(name, core(`channel.${name}`), counts[name] || 0))}</div>
    <div class="row">
      ${moved && html`<${Button} small kind="quiet" icon="up" onClick=${arrange}>${t('moved')}<//>`}
      <label class="find"><${Icon} name="search" size=${16} /><input type="search" data-search aria-label=${t('search')} placeholder=${t('search')} value=${q}
        onInput=${(event) => setQuery({ q: event.target.value }, { replace: true })} /></label>
    </div>
  </div>`;
}

const columns = (results) => [
  { id: 'status', label: t('status'), card: 'status', sort: (row) => row.place, cell: (row) => html`<${ChannelStatus} status=${row.status} reason=${row.reason} /><span class="sr"> ${row.code}</span>` },
  ...(results.value.size ? [{ id: 'result', label: t('result'), card: 'meta', class: 'channel-result', cell: (row) => html`<${Result} of=${results.value.get(row.code)} />` }] : []),
  { id: 'code', label: t('code'), card: 'title', sort: (row) => row.code, class: 'channel-code', cell: (row) => html`<span class="row nowrap"><span class="mono clip" title=${row.code}>${row.code}</span><${Copy} text=${row.code} what=${row.code} /></span>` },
  { id: 'name', label: t('name'), card: 'text', sort: (row) => row.name, class: 'channel-name', cell: (row) => html`<bdi class="clip">${mask(row.name)}</bdi>` },
  { id: 'network', label: t('network'), class: 'channel-network', sort: (row) => row.network, cell: (row) => html`<${Network} of=${row} />` },
  { id: 'number', label: t('number'), card: 'meta', class: 'channel-number', sort: (row) => row.number, cell: (row) => (row.number ? html`<${Who} number=${row.number} />` : html`<span class="hide-small">–</span>`) },
  { id: 'since', label: t('since'), card: 'when', sort: (row) => row.since, cell: (row) => html`<${Short} at=${row.since} />` },
  { id: 'inbound', label: t('inbound'), class: 'channel-inbound', sort: (row) => row.last_inbound_at, cell: (row) => html`<${Short} at=${row.last_inbound_at} />` },
  { id: 'confirmed', label: t('confirmed'), class: 'channel-confirmed', sort: (row) => row.last_confirmed_at, cell: (row) => html`<${Short} at=${row.last_confirmed_at} />` },
  { id: 'waiting', label: t('waiting'), align: 'end', class: 'channel-waiting', sort: (row) => row.waiting || 0, cell: (row) => num(row.waiting || 0) },
  { id: 'day', label: t('day'), align: 'end', class: 'channel-day', sort: (row) => row.failed_24h * 1e9 + row.sent_24h, cell: (row) => html`${num(row.sent_24h)} / <span class=${row.failed_24h ? 'some-failed' : ''}>${num(row.failed_24h)}</span>` },
];

// To the minute or the day, so that ten columns fit; all of it on hover.
const Short = ({ at }) => (at ? html`<time datetime=${at} title=${full(at)}>${isToday(at) ? clock(at).slice(0, 5) : day(at)}</time>` : '–');

const Network = ({ of: row }) => html`<span class="row nowrap"><${Badge} tone=${row.network === 'sandbox' ? 'warn' : 'good'}>${row.network}<//>
  ${row.restricted_until && html`<${Badge} tone="bad">${t('restricted')}<//>`}</span>`;

// Bulk start and stop, a few at a time, with a result for each.

const together = 4; // requests at once: a server with thousands of channels has other work too

export function Bulk({ picked, results, rows }) {
  const [run, setRun] = useState(null); // {n, done, failed}
  const going = useRef(false);
  useEffect(() => () => { going.current = false; }, []);
  const codes = (rows || []).map((row) => row.code).filter((code) => picked.value.has(code));

  const work = (verb) => async () => {
    const n = codes.length;
    if (verb === 'stop' && !await confirm({ title: t('stopTitle', { n }), text: t('stopText'), action: t('stop'), danger: true })) return;
    const left = [...codes];
    const outcomes = new Map();
    results.value = outcomes;
    going.current = true;
    let failed = 0;
    const next = async () => {
      for (let code; going.current && (code = left.shift());) {
        try {
          await api.post(`/manage/channels/${code}/${verb}`);
          outcomes.set(code, { good: true, text: t(`did.${verb}`) });
        } catch (error) {
          failed++;
          outcomes.set(code, { text: error.message });
        }
        results.value = new Map(outcomes);
        setRun({ n, done: outcomes.size, failed });
      }
    };
    setRun({ n, done: 0, failed });
    await Promise.all(Array.from({ length: together }, next));
    going.current = false;
    setRun({ n, done: outcomes.size, failed, over: true });
    say(`${t('finished', { n: outcomes.size })} ${failed ? t('failures', { n: failed }) : ''}`);
  };
  const close = () => { setRun(null); results.value = new Map(); picked.value = new Set(); };

  if (!codes.length && !run) return null;
  return html`<div class="bulk" role="region" aria-label=${t('selected', { n: codes.length })} data-t="bulk">
    ${run ? html`<progress max=${run.n} value=${run.done} aria-label=${t('running', { done: run.done, n: run.n })} />
      <span>${run.over ? t('finished', { n: run.done }) : t('running', { done: run.done, n: run.n })}</span>
      ${run.failed > 0 && html`<span class="some-failed">${t('failures', { n: run.failed })}</span>`}` : html`<strong>${t('selected', { n: codes.length })}</strong>`}
    <span class="row">
      ${run && !run.over ? html`<${Button} key="leave" small onClick=${() => { going.current = false; }}>${t('cancelRest')}<//>` : html`
        <${Button} key="start" small icon="play" disabled=${!codes.length} onClick=${work('start')}>${t('start')}<//>
        <${Button} key="stop" small icon="stop" disabled=${!codes.length} onClick=${work('stop')}>${t('stop')}<//>
        <${Button} key="clear" small kind="quiet" onClick=${close}>${t('deselect')}<//>`}
    </span>
  </div>`;
}

export const Result = ({ of: result }) => result && html`<span class="state ${result.good ? 'good' : 'bad'} clip" title=${result.text}><${Icon} name=${result.good ? 'good' : 'bad'} size=${16} />${result.text}</span>`;

// A new channel: in the sandbox, or on WhatsApp, where it is paired next.

/** The dialog that ?new= opens. */
export function NewChannel() {
  const network = query.value.new;
  return html`<${Dialog} open=${Boolean(network)} title=${t('new')} onClose=${() => setQuery({ new: null })}><${NewForm} network=${network} /><//>`;
}

function NewForm({ network }) {
  const form = useForm({ network: network === 'whatsapp' ? network : 'sandbox', code: '', name: '' }, async (values) => {
    const { data } = await api.post('/manage/channels', wanted(values));
    await reloadChannels();
    go(`/channels/${data.code}${data.network === 'sandbox' ? '' : '/pair'}`);
  });
  const networks = ['sandbox', 'whatsapp'].filter((name) => !server.value?.networks || server.value.networks.includes(name));
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="network" label=${t('kind')} type="radio" options=${networks.map((name) => [name, t(name === 'sandbox' ? 'sandbox' : 'whatsapp')])} />
    <${Field} form=${form} name="code" label=${t('code')} hint=${t('codeHint')} required autofocus autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="32" class="mono" />
    <${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} autocomplete="off" maxlength="60" />
    <div class="row"><${Submit} need="operator" form=${form}>${t('create')}<//><${AsCode} request=${{ method: 'POST', path: '/api/manage/channels', body: wanted(form.values) }} /></div>
  <//>`;
}

const wanted = ({ network, code, name }) => ({ code, network, ...(name && { name }) });
