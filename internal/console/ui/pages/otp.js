// One-time passwords from start to end.
import { html, useState, useEffect, useRef } from '../view.js';
import { api } from '../api.js';
import { href, setQuery, query } from '../router.js';
import { currentChannel, channelsLoaded } from '../state.js';
import { texts, duration, clock } from '../i18n.js';
import { Head, Card, Note, Empty, Loading, Failed } from '../parts/card.js';
import { Tabs } from '../parts/tabs.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { useForm, Form, Field, Submit, toContact } from '../parts/form.js';
import { lazy } from '../parts/lazy.js';
import { number, mask } from '../parts/who.js';
import { usePhones, stranger, toName } from './phone_list.js';
import { Chat } from './phone_chat.js';
import { LoginPage, Entry } from './otp_login.js';
import { useEvents } from '../live.js';
import { Icon } from '../parts/icon.js';

const t = texts('otp');
const Trouble = lazy(() => import('./otp_trouble.js').then((module) => module.Trouble), 3);

export default function Page({ route }) {
  const channel = currentChannel.value;
  if (!channel) return html`<${Head} title=${t('title')} />
    ${channelsLoaded.value ? html`<${Empty} icon="otp" title=${t('noChannel')}><${Button} kind="primary" href=${href('/channels')}>
      ${t('toChannels')}<//><//>` : html`<${Loading} />`}`;
  return html`<${Playground} key=${channel.code} channel=${channel} kind=${route.query.kind === 'link' ? 'link' : 'code'} />`;
}

function Playground({ channel, kind }) {
  const real = !channel.simulated;
  const phones = usePhones(channel.code);
  const first = phones.list?.find((one) => one.channel === channel.code)?.number || '';
  const [draft, setDraft] = useState('');
  const [codes, setCodes] = useState([]);
  const timeline = useTimeline(channel.code);
  const { run } = timeline;
  const digits = run ? number(run.contact) : number(query.value.to) || first;
  const device = phones.find(digits, channel.code) || stranger(digits, channel.code);
  const phoneColumn = useRef();

  const shown = useRef([]); // what is on the phone's screen
  const request = async (body) => {
    const after = shown.current.at(-1)?.id;
    const { data } = await api.post(`/otp/${kind}/request`, body, { channel: channel.code });
    setCodes([]);
    setDraft('');
    timeline.begin({ kind, after, contact: body.contact_id, answer: data, callback: Boolean(body.callback), prompt: data.link &&
      toPrompt(data.link) });
  };
  // The codes that came since the request: those of before are no use here.
  const seen = (list) => {
    shown.current = list;
    if (run?.kind !== 'code') return;
    const fresh = list.slice(list.findIndex((m) => m.id === run.after) + 1);
    setCodes(fresh.findLast((m) => !m.from_phone && m.codes.length)?.codes || []);
  };
  useEffect(() => seen(shown.current), [run?.answer.id]);
  const openPhone = () => {
    setDraft(run.prompt);
    phoneColumn.current?.scrollIntoView({ block: 'nearest' });
  };
  const tap = async () => {
    await api.post(`/sandbox/phones/${digits}/send`, { type: 'text', message: run.prompt }, { channel: channel.code });
    setDraft('');
  };
  if (!real && !phones.list) return html`<${Head} title=${t('title')} />${phones.load.error ? html`<${Failed} load=${phones.load} />`
    : html`<${Loading} rows=${5} />`}`;
  const common = { channel: channel.code, kind, timeline, real };
  return html`
    <${Head} title=${t('title')} lead=${t(real ? 'leadReal' : 'lead', { channel: channel.code })} />
    <${Tabs} label=${t('title')} current=${kind}
      tabs=${['code', 'link'].map((id) => ({ id, label: t(`kind.${id}`), href: href('/otp', { kind: id === 'link' ? id : null }) }))} />
    <div class="otp-columns" ...${Entry.near}>
      <${Backend} key=${kind} ...${common} first=${digits} request=${request} />
      <div class="otp-phone" ref=${phoneColumn} role="region" aria-label=${t('phone')}>
        <h2>${t('phone')} <span class="muted">${toName(device)}</span></h2>
        ${real ? html`<${Note}>${t('realPhone')}<//>`
          : digits && html`<div class="screen"><${Chat} key=${digits} channel=${channel.code} device=${device} draft=${draft}
            onDraftSent=${() => setDraft('')} onMessages=${seen} /></div>`}
      </div>
      <${LoginPage} key=${run?.answer.id} ...${common} codes=${codes} openPhone=${openPhone} tap=${tap} request=${request}
        contact=${`${digits}@c.us`} />
    </div>
    <${Timeline} timeline=${timeline} />
    <${Card} title=${t('tryFailure')}>${run?.kind === kind
      ? html`<${Trouble} ...${common} run=${run} codes=${codes} phones=${phones} digits=${digits} request=${request} />`
      : html`<p class="muted">${t('tryFailureHint')}</p>`}<//>`;
}

const toPrompt = (link) => new URL(link).searchParams.get('text');

/** The form of a request, the request as code and what was answered to it. */
function Backend({ channel, kind, timeline, real, first, request }) {
  const [sure, setSure] = useState(false);
  const link = kind === 'link';
  const toBody = ({ to, name, expires, length, letters, callback }) => ({
    contact_id: `${number(to)}@c.us`,
    ...(name && { name }),
    expires: Number(expires),
    ...(!link && Number(length) !== 6 && { length: Number(length) }),
    ...(!link && letters && { useLetter: true, allCapital: true }),
    ...(link && callback && { callback: { success: callback, failed: callback } }),
  });
  const form = useForm({ to: first, name: '', expires: 300, length: 6, letters: false, callback: '' },
    (values) => request({ ...toBody(values), contact_id: toContact(values.to) }));
  useEffect(() => setQuery({ to: number(form.values.to) === first ? query.value.to : number(form.values.to) }, { replace: true }),
    [form.values.to]);
  const body = toBody(form.values);
  const code = { method: 'POST', path: `/api/otp/${kind}/request`, headers: { 'X-Channel': channel }, body };
  return html`<${Card} title=${t('backend')} actions=${html`<${AsCode} small request=${code} />`}>
    <${Form} form=${form}>
      ${real && html`<${Note} kind="warn"><label class="choice">
        <input type="checkbox" checked=${sure} onChange=${(event) => setSure(event.target.checked)} /><span>${t('sure')}</span>
        </label><//>`}
      <${Field} form=${form} name="to" path="contact_id" type="tel" label=${t('to')} required />
      <div class="otp-row"><${Field} form=${form} name="name" label=${t('name')} maxlength="60" />
        <${Field} form=${form} name="expires" type="number" label=${t('expires')} min=${link ? 60 : 30} max=${link ? 86400 : 3600} /></div>
      ${link ? html`<${Field} form=${form} name="callback" path="callback.success" type="url" label=${t('callback')}
        hint=${t('callbackHint', { example: 'localhost:3000/login' })} />`
        : html`<div class="otp-row"><${Field} form=${form} name="length" type="number" label=${t('length')} min="4" max="6" />
          <${Field} form=${form} name="letters" type="checkbox" label=${t('letters')} /></div>`}
      <${Submit} need="operator" form=${form} icon="send" disabled=${real && !sure}>${t(`ask.${kind}`)}<//>
    <//>
    ${timeline.run?.kind === kind &&
      html`<h3>${t('answer')}</h3><${Code} wrap
        text=${mask(JSON.stringify(real ? hidden(timeline.run.answer) : timeline.run.answer, null, 2))} what="JSON" />`}
  <//>`;
}

// On a real network nobody but its owner sees a code.
const hidden = (answer) => Object.fromEntries(Object.entries(answer)
  .map(([key, value]) => [key, /^(code|link|app_uri)$/.test(key) ? '••••••' : value]));

// What happened to one request, step by step, from what the server tells.

const look = [100, 200, 300, 500, 500, 1000, 1000, 2000, 3000, 5000]; // when to look whether a callback was taken

/**
 * {run, steps, outcomes, begin(run), add(step), note(outcome)}: the request on show, its steps, and what
 * came of trying to make it fail. run is {kind, contact, answer, callback, prompt, ended}.
 */
export function useTimeline(channel) {
  const [run, setRun] = useState(null);
  const [steps, setSteps] = useState([]);
  const [outcomes, setOutcomes] = useState([]);
  const now = useRef();
  now.current = run;
  const ids = useRef({});
  const add = (id, more = {}) =>
    setSteps((was) => (was.some((step) => step.id === id && !more.again) ? was : [...was, { id, at: Date.now(), ...more }]));
  const note = (outcome) => setOutcomes((was) => [{ key: Date.now() + Math.random(), at: Date.now(), ...outcome }, ...was].slice(0, 20));

  // The next event may come before this is drawn.
  const end = (ended, why) => { now.current = { ...now.current, ended, why }; setRun(now.current); };

  useEvents(['message.status', 'message.received', 'otp.'], (events) => {
    for (const { type, channel: of, data, id: event } of events) {
      const { current } = now;
      if (!current || of !== channel) continue;
      if (type.startsWith('otp.')) {
        if (data.id !== current.answer.id) continue;
        const outcome = type.slice(4);
        if (current.ended === 'not_sent') continue; // said already
        if (outcome !== 'failed') setRun((was) => ({ ...was, ended: outcome }));
        add(outcome, { reason: data.reason, tone: outcome === 'approved' ? 'good' : 'bad', again: outcome === 'failed' });
        if (current.callback && outcome !== 'expired') toCallback(event, add,
          () => now.current === current || now.current?.answer === current.answer);
      } else if (number(data.contact_id) === number(current.contact)) {
        if (type === 'message.received') { if (current.kind === 'link') add('typed'); continue; }
        if (!data.outgoing) continue;
        // The first message to the contact is the code; after a link was answered, it is the answer.
        ids.current.message ||= data.id;
        if (current.kind === 'code' && ids.current.message === data.id && data.status !== 'PENDING') {
          if (data.status === 'FAILED') end('not_sent', data.error?.message);
          add(data.status.toLowerCase(), { reason: data.error?.message, tone: data.status === 'FAILED' ? 'bad' : '' });
        }
        if (current.kind === 'link' && data.status === 'SENT') add('answered', { again: true });
      }
    }
  });
  return {
    run, steps, outcomes, add, note,
    begin(next) {
      ids.current = {};
      now.current = next;
      setRun(next);
      setSteps([{ id: next.kind === 'code' ? 'requested' : 'created', at: Date.now() }]);
      setOutcomes([]);
    },
    end,
  };
}

// Callbacks produce no event, so poll a few times with growing delays.
async function toCallback(event, add, wanted) {
  for (const pause of look) {
    await new Promise((done) => { setTimeout(done, pause); });
    if (!wanted()) return;
    const { data } = await api.get('/manage/deliveries', { query: { event_id: event } });
    const delivery = data.find((row) => !row.webhook && row.tried_at);
    if (!delivery) continue;
    add('callback', { reason: delivery.code ? `HTTP ${delivery.code}` : delivery.problem, took: delivery.took_ms,
      tone: delivery.state === 'delivered' ? 'good' : 'bad', again: true });
    return;
  }
}

const icons = { good: 'good', bad: 'bad' };

export function Timeline({ timeline }) {
  const { steps } = timeline;
  if (!steps.length) return null;
  const [{ at: begun }] = steps;
  return html`<${Card} title=${t('timeline')} data-t="timeline"><ol class="otp-steps" aria-live="polite">
    ${steps.map((step, i) => html`<li key=${i} class=${step.tone || ''} data-step=${step.id}>
      <${Icon} name=${icons[step.tone] || 'check'} size=${16} /><b>${t(`step.${step.id}`)}</b>
      <span class="muted mono-num">${i ? duration(step.at - begun) : clock(step.at)}</span>
      ${step.reason && html`<span class="muted"><bdi>${t.has(`reason.${step.reason}`) ? t(`reason.${step.reason}`) : step.reason}</bdi>
        ${step.took != null && ` · ${duration(step.took)}`}</span>`}
    </li>`)}</ol><//>`;
}
