// One delivery: how its attempts went, what was sent byte for byte, what came back, and how to check the signature.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { now } from '../state.js';
import { texts, duration } from '../i18n.js';
import { Button, Copy } from '../parts/button.js';
import { Facts, Failed, Loading } from '../parts/card.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { Result, outcome } from '../parts/delivery.js';
import { toAttempts, isDue, useSoon } from '../parts/delivery_soon.js';
import { lazy } from '../parts/lazy.js';
import { Badge, EventType } from '../parts/status.js';
import { Time, Left } from '../parts/time.js';
import { useKeys } from '../keys.js';
import { Who, mask } from '../parts/who.js';
import { toast } from '../parts/toast.js';

const t = texts('deliveries');
const Verify = lazy(() => import('./webhooks_verify.js').then((module) => module.Verify), 8);

export function Delivery({ id, onChange }) {
  const load = useLoad(() => api.get(`/manage/deliveries/${id}`), [now.value]);
  const d = load.data?.data;
  const [verifying, setVerifying] = useState(false); // or it was
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
    ${d.request && html`<details ...${Verify.near} onToggle=${(event) => event.target.open && setVerifying(true)}><summary>${t('verify')}
      </summary>${verifying && html`<${Verify} of=${d} />`}</details>`}`;
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
