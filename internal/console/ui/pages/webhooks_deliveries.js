// Deliveries to webhooks and callbacks. Waiting ones can be retried now, finished ones replayed: one, some or all.
import { html, useState, useEffect, useRef, useSignal } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { selected, now, hasRole } from '../state.js';
import { texts, num, duration } from '../i18n.js';
import { Table } from '../parts/table.js';
import { Button, Copy } from '../parts/button.js';
import { Empty, Failed, Facts, Loading } from '../parts/card.js';
import { confirm, useDrawer, Drawer } from '../parts/dialog.js';
import { useHold, useHeldRows, NewRows } from '../parts/hold.js';
import { Badge, EventType, eventName } from '../parts/status.js';
import { Time, Left } from '../parts/time.js';
import { useKeys } from '../keys.js';
import { AsCode, Code, CodeTabs } from '../parts/code.js';
import { Who, mask } from '../parts/who.js';
import { toast } from '../parts/toast.js';
import { Export } from '../parts/export.js';

const t = texts('deliveries');

const perPage = 100;
const mostPages = 10;
const perStep = 250; // of a replay, so that its progress is seen
const states = ['all', 'failed', 'retrying', 'waiting', 'delivered'];
const spans = { '1h': 3600, '24h': 86_400, '7d': 604_800 };

const toSince = (span) => (spans[span] ? new Date(Date.now() - spans[span] * 1000).toISOString() : undefined);
const toKey = (row) => row.id;
const blank = { failed: 0, retrying: 0, waiting: 0 }; // chips that will have a count keep room for it

export function Deliveries({ webhooks }) {
  const { state = 'all', webhook, since } = query.value;
  const which = { webhook, channel: selected.value || undefined };
  const about = JSON.stringify([which, state, since]);
  const [pages, setPages] = useState(1);
  const filter = () => ({ ...which, since: toSince(since) });
  const ask = (more) => api.get('/manage/deliveries', { query: { ...filter(), ...more } });
  const load = useLoad(async () => ({ about,
    ...await api.list('/manage/deliveries', { ...filter(), state: state === 'all' ? undefined : state, limit: perPage }, pages),
  }), [about, pages, now.value], { on: ['message.', 'otp.', 'poll.', 'channel.'] });
  const counts = useLoad(async () => {
    const [failed, retrying, waiting] = await Promise.all(['failed', 'retrying', 'waiting'].map((one) => ask({ state: one, limit: 1 })));
    const oldest = failed.meta.total ? (await ask({ state: 'failed', limit: 1, order: 'oldest' })).data[0] : null;
    return { failed: failed.meta.total, retrying: retrying.meta.total, waiting: waiting.meta.total, oldest };
  }, [about, now.value], { on: ['message.', 'otp.'] });
  const hold = useHold();
  const [rows, fresh, show] = useHeldRows(load.data?.rows, toKey, hold.held, load.data?.about);
  const reload = () => Promise.all([load.reload(), counts.reload()]);
  const lookAgain = useSoon(rows?.some(isDue), load.data, reload);
  const drawer = useDrawer(rows, toKey);
  const picked = useSignal(new Set());
  useEffect(() => { if (picked.value.size) picked.value = new Set(); }, [about]); // what is not seen must not be resent
  const done = () => { lookAgain(); return reload().then(show); };
  const at = (more) => href('/webhooks/deliveries', { webhook, since, state: state === 'all' ? undefined : state, ...more });
  const count = counts.data || {};
  // The bars above the list come first: it must not move when they do.
  const ready = counts.error || load.error || (counts.data && webhooks);
  const filtered = state !== 'all' || webhook || since;
  const failing = webhooks?.some((one) => one.failing_since && (!webhook || one.id === webhook));
  return html`
    <div class="spread delivery-filters">
      <nav class="chips" aria-label=${t('filter')}>
        ${states.map((one) => html`<a key=${one} class="chip" href=${at({ state: one })} aria-current=${one === state ? 'true' : undefined}>
          ${t(`show.${one}`)}${one in (counts.data || blank) && html` <span class="count">${num(count[one])}</span>`}</a>`)}</nav>
      <div class="row">
        ${webhooks?.length > 0 && html`<select class="pick-one" aria-label=${t('endpoint')} value=${webhook || ''}
          onChange=${(event) => setQuery({ webhook: event.target.value })}>
          <option value="">${t('everyEndpoint')}</option>
            ${webhooks.map((one) => html`<option key=${one.id} value=${one.id} selected=${one.id === webhook}>${one.url}
              </option>`)}</select>`}
        <select class="pick-one" aria-label=${t('since')} value=${since || ''}
          onChange=${(event) => setQuery({ since: event.target.value })}>
          <option value="">${t('anyTime')}</option>
            ${Object.keys(spans).map((one) => html`<option key=${one} value=${one} selected=${one === since}>${t(`span.${one}`)}
              </option>`)}</select>
        <${Export} what=${t('title')} path="/manage/deliveries/export"
          query=${{ ...which, since: toSince(since), state: state === 'all' ? undefined : state }} />
      </div>
    </div>
    <${Bulk} which=${which} since=${since} counts=${counts.data} onDone=${done} />
    <${Waiting} webhooks=${webhooks?.filter((one) => one.enabled && (!webhook || one.id === webhook))} counts=${counts.data}
      onDone=${done} />
    <${Picked} picked=${picked} rows=${rows} onDone=${done} />
    ${load.error && rows && html`<${Failed} load=${load} />`}
    ${!ready ? html`<${Loading} rows=${6} />` : html`<div ...${hold.box} class="deliveries"><${NewRows} n=${fresh} onShow=${show} />
      <${Table} label=${t('title')} load=${load} rows=${rows} rowKey=${toKey} drawer=${drawer} rowHref=${(row) => at(drawer.at(row.id))}
        columns=${columns}
        selection=${hasRole('operator') ? picked : undefined}
        empty=${filtered ? html`<${Empty} icon="filter" title=${t('noMatch')}
          text=${state === 'failed' ? t(failing ? 'stillTried' : 'goodNews') : ''}><${Button} href=${href('/webhooks/deliveries')}>
          ${t('clear')}<//><//>`
          : html`<${Empty} icon="webhooks" title=${t('none')} text=${t('noneText')}><${Button} href=${href('/phone')}>${t('toPhone')}<//>
            <//>`} /></div>`}
    ${load.data?.total > rows?.length && pages < mostPages && html`<div class="row end"><span class="muted">
      ${t('shown', { n: rows.length, all: load.data.total })}</span>
      <${Button} busy=${load.loading && pages > 1 && rows.length <= (pages - 1) * perPage} onClick=${() => setPages(pages + 1)}>
      ${t('older')}<//></div>`}
    <${Drawer} drawer=${drawer} title=${drawer.row ? eventName(drawer.row.type) : t('delivery')}>
      ${drawer.id.startsWith('dlv_') && html`<${Delivery} key=${drawer.id} id=${drawer.id} onChange=${reload} />`}<//>`;
}

const columns = [
  { id: 'time', get label() { return t('time'); }, cell: (d) => html`<${Time} at=${d.created_at} />`, card: 'when' },
  { id: 'type', get label() { return t('event'); }, cell: (d) => html`<${EventType} type=${d.type} class="wide" />`, card: 'title' },
  { id: 'channel', get label() { return t('channel'); }, cell: (d) => html`<span class="clip">${d.channel}</span>`, wide: true,
    class: 'channel-cell' },
  { id: 'url', get label() { return t('endpoint'); }, cell: (d) => html`${!d.webhook && html`<${Badge} tone="accent">${t('callback')}<//> `}
    <bdi title=${d.url}>${d.url.replace(/^\w+:..|\?.*/g, '')}</bdi>`, card: 'text', class: 'url-cell' },
  { id: 'result', get label() { return t('result'); }, cell: (d) => html`<${Result} d=${d} />`, card: 'status' },
  { id: 'attempts', get label() { return t('attempts'); }, cell: (d) => html`<span class="mono-num">${d.attempts}/${toAttempts(d)}</span>`,
    align: 'end', wide: true },
  { id: 'next', get label() { return t('next'); },
    cell: (d) => (d.next_at ? html`<span class="mono-num" title=${d.next_at}><${Left} until=${d.next_at} /></span>`
      : d.state === 'waiting' ? t('inLine') : ''), align: 'end' },
];

/** "Replay 214 failed since 11:40": counted before it is done, in steps that are seen. */
function Bulk({ which, since, counts, onDone }) {
  const [run, setRun] = useState(null);
  const failed = counts?.failed;
  const replay = async () => {
    const body = { ...which, state: 'failed', since: toSince(since) };
    // What it would do is asked first: the count that is shown may be some seconds old.
    const { meta } = await api.get('/manage/deliveries', { query: { ...body, limit: 1 } });
    const all = meta.total;
    if (!await confirm({ title: t('replayAll', { n: all }), text: t('replayText', { n: all }), action: t('replay') })) return;
    const step = { done: 0, all, running: true };
    setRun({ ...step });
    try {
      for (let more = true, before; more;) {
        const { data } = await api.post('/manage/deliveries/replay', { ...body, limit: perStep, ended_before: before });
        before = data.ended_before;
        more = data.more;
        step.done += data.replayed;
        setRun({ ...step });
      }
    } finally {
      setRun({ ...step, running: false });
      await onDone();
    }
  };
  if (!failed && !run) return null;
  return html`<div class="bulk-bar" role="status">
    ${run ? html`<progress max=${Math.max(run.all, run.done, 1)} value=${run.done} aria-label=${t('progress')} /><span>
      ${t(run.running ? 'running' : 'finished', { n: run.done, all: run.all })}</span>
        ${!run.running && html`<${Button} small kind="quiet" onClick=${() => setRun(null)}>${t('close')}<//>`}`
      : html`<span class="grow">${t('someFailed', { n: failed })}</span>`}
    ${failed > 0 && !run?.running && html`<${Button} need="operator" small icon="refresh" onClick=${replay}>
      ${t('replaySince', { n: failed, time: html`<${Time} at=${counts.oldest?.created_at} />` })}<//>`}
  </div>`;
}

/** "12 wait for a retry": all of the shown webhooks are tried now. Deliveries of a webhook that is off wait until it is on. */
function Waiting({ webhooks, counts, onDone }) {
  if (!counts?.retrying || !webhooks?.length) return null;
  const retry = async () => {
    let n = 0;
    for (const { id } of webhooks) n += (await api.post(`/manage/webhooks/${id}/retry`)).data.waiting;
    toast(t('retriedAll', { n }), { kind: 'good' });
    await onDone();
  };
  return html`<div class="bulk-bar"><span class="grow">${t('someWait', { n: counts.waiting, tried: num(counts.retrying) })}</span>
    <${Button} need="operator" small icon="refresh" onClick=${retry}>${t('retryAll')}<//></div>`;
}

/** What can be done with the ticked rows: those that wait are retried, the others replayed. */
function Picked({ picked, rows, onDone }) {
  const mine = (rows || []).filter((row) => picked.value.has(row.id));
  if (!mine.length) return null;
  const waiting = mine.filter((row) => row.state === 'waiting');
  const finished = mine.filter((row) => row.state !== 'waiting');
  const close = () => { picked.value = new Set(); };
  const over = async (text) => { toast(text, { kind: 'good' }); close(); await onDone(); };
  const retry = async () => {
    for (const { id } of waiting) await api.post(`/manage/deliveries/${id}/retry`);
    await over(t('retriedAll', { n: waiting.length }));
  };
  const replay = async () => {
    const { data } = await api.post('/manage/deliveries/replay', { ids: finished.map(toKey) });
    await over(t('replayedAll', { n: data.replayed }));
  };
  return html`<div class="bulk" role="region" aria-label=${t('picked', { n: mine.length })} data-t="picked"><strong>
    ${t('picked', { n: mine.length })}</strong>
    <span class="row">
      ${waiting.length > 0 && html`<${Button} small icon="refresh" onClick=${retry}>${t('retrySome', { n: waiting.length })}<//>`}
      ${finished.length > 0 && html`<${Button} small icon="refresh" onClick=${replay}>${t('replaySome', { n: finished.length })}<//>`}
      <${Button} small kind="quiet" onClick=${close}>${t('deselect')}<//></span></div>`;
}

// One delivery: how its attempts went, what was sent byte for byte, what came back, and how to check the signature.

export function Delivery({ id, onChange }) {
  const load = useLoad(() => api.get(`/manage/deliveries/${id}`), [now.value]);
  const d = load.data?.data;
  const verifier = useVerifier();
  const request = { method: 'POST', path: '/api/manage/deliveries/replay', body: { ids: [id] } };
  const replay = async () => {
    await api.post('/manage/deliveries/replay', request.body);
    toast(t('replayed'), { kind: 'good' });
    lookAgain();
    await Promise.all([load.reload(), onChange()]);
  };
  const retry = async () => {
    await api.post(`/manage/deliveries/${id}/retry`);
    toast(t('retried'), { kind: 'good' });
    lookAgain();
    await Promise.all([load.reload(), onChange()]);
  };
  useKeys([['r', t('replay'), () => { if (d) (d.state === 'waiting' ? retry : replay)(); }, 'operator']], 'drawer');
  const lookAgain = useSoon(isDue(d), load.data, () => { load.reload(); onChange(); });
  if (load.error && !d) return html`<${Failed} load=${load} />`;
  if (!d) return html`<${Loading} rows=${6} />`;
  const event = d.body && JSON.parse(d.body);
  const message = event?.data?.message_id;
  return html`
    <p class="answer">${sentence(d)}</p>
    <div class="row">
      ${d.state === 'waiting' ? html`<${Button} need="operator" small icon="refresh" onClick=${retry}>${t('retry')}<//>`
        : html`<${Button} need="operator" small icon="refresh" onClick=${replay}>${t('replay')}<//>`}
      <${AsCode} small request=${d.state === 'waiting' ? { method: 'POST', path: `/api/manage/deliveries/${id}/retry` } : request} />
      ${message && html`<${Button} small icon="messages" href=${href('/messages', { open: `${d.channel}.${message}` })}>
        ${t('message')}<//>`}
    </div>
    <${Facts} rows=${[
      [t('result'), html`<${Result} d=${d} />`],
      [t('attempts'), t('attemptOf', { n: d.attempts, all: toAttempts(d) })],
      [t('tried'), d.tried_at && html`<${Time} at=${d.tried_at} ago />`],
      [t('next'), d.next_at && html`<${Time} at=${d.next_at} /> · <${Left} until=${d.next_at} />`],
      [t('endpoint'), html`<bdi>${d.url}</bdi>
        ${d.webhook && html` <a href=${href('/webhooks', { webhook: d.webhook })}>${d.webhook}</a>`}`],
      [t('event'), html`<${EventType} type=${d.type} />`],
      [t('eventId'), html`<span class="mono">${d.event_id}</span> <${Copy} text=${d.event_id} what="ID" />`],
      [t('channel'), d.channel && html`<a href=${href(`/channels/${d.channel}`)}>${d.channel}</a>`],
      [t('contact'), d.contact_id && html`<${Who} number=${d.contact_id} />`],
      [t('time'), html`<${Time} at=${d.created_at} />`],
      ['ID', html`<span class="mono">${d.id}</span> <${Copy} text=${d.id} what="ID" />`],
    ]} />
    ${d.history.length > 1 && html`<${Attempts} d=${d} />`}
    <section><h3>${t('request')}</h3>${d.request ? html`<${Code} wrap text=${mask(requestText(d))} what=${t('request')} />`
      : html`<p class="muted">${t(d.tried_at ? 'bodyErased' : 'untried')}</p>`}</section>
    ${d.tried_at && html`<section><h3>${t('response')}</h3><${Code} wrap text=${`${outcome(d)}${d.answer ? `\n\n${d.answer}` : ''}`}
      what=${t('response')} /></section>`}
    ${d.request && html`<details><summary>${t('verify')}</summary>${verifier && html`<${CodeTabs} shell="Shell" write=${verifier(d)}
      hint=${t(d.webhook ? 'verifyHint' : 'verifyCallback',
        { name: html`<code>$WEBHOOK_SECRET</code>`, channel: html`<code>parley channel secret ${d.channel}</code>` })} />`}</details>`}`;
}

// The programs that check a signature are seldom wanted: they are fetched when a delivery is shown.
function useVerifier() {
  const [verifier, setVerifier] = useState(null);
  useEffect(() => { import('./webhooks_verify.js').then((module) => setVerifier(() => module.verifier), () => {}); }, []);
  return verifier;
}

/** Each attempt with its own number: some may be missing, and those before a replay are there. */
const Attempts = ({ d }) => html`<section><h3>${t('attempts')}</h3>
  <ol class="tries">${d.history.map((a) => html`<li key=${a.number} value=${a.number}><div class="row"><${Time} at=${a.at} />
    <${Badge} tone=${a.problem ? 'bad' : 'good'}>${outcome(a)}<//></div>
    ${a.answer && html`<bdi class="clip muted" title=${a.answer}>${a.answer}</bdi>`}</li>`)}</ol>
  ${d.history.at(-1).number !== d.attempts && html`<p class="muted">${t('countsOn')}</p>`}</section>`;

function sentence(d) {
  const values = { n: d.attempts, all: toAttempts(d), took: duration(d.took_ms), problem: d.problem.replace(/^\w+: ?/, '') || outcome(d) };
  if (d.state === 'delivered') return t('wasDelivered', values);
  if (d.state === 'failed') return t('wasGivenUp', values);
  return d.tried_at ? html`${t('willRetry', values)} ${d.next_at && t('inTime', { time: html`<${Left} until=${d.next_at} />` })}`
    : t('willTry');
}

const requestText = ({ request: { method, url, headers }, body }) =>
  `${method} ${url}\n${Object.entries(headers).sort().map(([name, value]) => `${name}: ${value}`).join('\n')}${body ? `\n\n${body}` : ''}`;

// The state of a delivery, in words.

const tones = { delivered: 'good', failed: 'bad', retrying: 'warn' };

/** "200 in 84 ms", "timeout after 10 s", "DNS failed"; of one that was not tried yet that it waits. */
export function outcome({ code, took_ms: took, problem, tried_at: tried }) {
  if (!tried && !code && !problem) return t('untried');
  if (code) return t('answered', { code: String(code), took: duration(took) });
  const word = problem.split(':')[0];
  return t.has(`problem.${word}`) ? t(`problem.${word}`, { took: duration(took) }) : problem;
}

// One that failed and is tried again is not one that only waits for its turn.
const toState = ({ state, attempts }) => (state === 'waiting' && attempts ? 'retrying' : state);

export const Result = ({ d }) => html`<span class="result"><${Badge} tone=${tones[toState(d)]} data-state=${d.state}>
  ${t(`state.${toState(d)}`)}<//> <span class="mono-num">${outcome(d)}</span></span>`;

/** How many attempts there are at most: those of a callback end sooner. */
export const toAttempts = (d) => (d.webhook ? 10 : 7);

/** Whether something may have become of a delivery that waits by the next look. */
export const isDue = (d) => d?.state === 'waiting' && (!d.next_at || Date.parse(d.next_at) - Date.now() < 5000);

const looksAtMost = 20; // what waits behind another may wait for days

/** Deliveries produce no events: while one is due, look() is called a few times. Returns a function that restarts that. */
export function useSoon(due, data, look) {
  const looks = useRef(0);
  useEffect(() => {
    if (!due || looks.current++ >= looksAtMost) return undefined;
    const timer = setTimeout(look, 700);
    return () => clearTimeout(timer);
  }, [due, data]);
  return () => { looks.current = 0; };
}

// Makes events happen on a sandbox channel: a simulated phone performs them; nothing is faked.

async function phoneOn(channel) {
  const { data } = await api.get('/sandbox/phones', { channel });
  return data[0] || (await api.post('/sandbox/phones', {}, { channel })).data;
}

const asPhone = async (channel, body) =>
  (await api.post(`/sandbox/phones/${(await phoneOn(channel)).number}/send`, body, { channel })).data;
const toPhone = async (channel, kind, body) =>
  (await api.post(`/send-message/${kind}`, { contact_id: (await phoneOn(channel)).contact_id, ...body }, { channel })).data;

/** By type of event: act(channel, text). */
export const acts = {
  'message.received': (channel, message) => asPhone(channel, { type: 'text', message }),
  'message.status': (channel, message) => toPhone(channel, 'text', { message }),
  'message.reaction': async (channel, message) => {
    const { message_id: id } = await toPhone(channel, 'text', { message });
    await asPhone(channel, { type: 'reaction', message_id: id, reaction: '👍' });
  },
  'message.edited': async (channel, message) => {
    const { message_id: id } = await asPhone(channel, { type: 'text', message });
    await asPhone(channel, { type: 'edit', message_id: id, message: `${message} …` });
  },
  'message.deleted': async (channel, message) => {
    const { message_id: id } = await asPhone(channel, { type: 'text', message });
    await asPhone(channel, { type: 'delete', message_id: id });
  },
  'message.media': (channel, caption) =>
    asPhone(channel, { type: 'file', caption, file: { data: btoa('Parley'), filename: 'parley.txt' } }),
  'poll.vote': async (channel, title) => {
    const { message_id: id } = await toPhone(channel, 'poll', { title, options: ['1', '2'] });
    await asPhone(channel, { type: 'vote', message_id: id, options: ['1'] });
  },
};
