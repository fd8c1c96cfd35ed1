// One delivery: how its attempts went, what was sent byte for byte, what came back, and how to check the signature.
import { html, useState, useEffect } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { now } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, duration } from '../i18n.js';
import { Facts, Loading, Failed } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode, Code, CodeTabs } from '../parts/code.js';
import { Badge } from '../parts/status.js';
import { Time, Left } from '../parts/time.js';
import { Who, mask } from '../parts/who.js';
import { toast } from '../parts/toast.js';
import { Result, attemptsOf, isDue, outcome, useSoon } from './webhooks-result.js';

const t = texts('deliveries');

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
  useKeys([['r', t('replay'), () => { if (d) (d.state === 'waiting' ? retry : replay)(); }]], 'drawer');
  const lookAgain = useSoon(isDue(d), load.data, () => { load.reload(); onChange(); });
  if (load.error && !d) return html`<${Failed} load=${load} />`;
  if (!d) return html`<${Loading} rows=${6} />`;
  const event = d.body && JSON.parse(d.body);
  const message = event?.data?.message_id;
  return html`
    <p class="answer">${sentence(d)}</p>
    <div class="row">
      ${d.state === 'waiting' ? html`<${Button} small icon="refresh" onClick=${retry}>${t('retry')}<//>`
        : html`<${Button} small icon="refresh" onClick=${replay}>${t('replay')}<//>`}
      <${AsCode} small request=${d.state === 'waiting' ? { method: 'POST', path: `/api/manage/deliveries/${id}/retry` } : request} />
      ${message && html`<${Button} small icon="messages" href=${href('/messages', { open: `${d.channel}.${message}` })}>${t('message')}<//>`}
    </div>
    <${Facts} rows=${[
      [t('result'), html`<${Result} d=${d} />`],
      [t('attempts'), t('attemptOf', { n: d.attempts, all: attemptsOf(d) })],
      [t('tried'), d.tried_at && html`<${Time} at=${d.tried_at} ago />`],
      [t('next'), d.next_at && html`<${Time} at=${d.next_at} /> · <${Left} until=${d.next_at} />`],
      [t('endpoint'), html`<bdi>${d.url}</bdi>${d.webhook && html` <a href=${href('/webhooks', { webhook: d.webhook })}>${d.webhook}</a>`}`],
      [t('event'), html`<span class="mono">${d.event_id}</span> <${Copy} text=${d.event_id} what="ID" />`],
      [t('channel'), d.channel],
      [t('contact'), d.contact_id && html`<${Who} number=${d.contact_id} />`],
      [t('time'), html`<${Time} at=${d.created_at} />`],
      ['ID', html`<span class="mono">${d.id}</span> <${Copy} text=${d.id} what="ID" />`],
    ]} />
    ${d.history.length > 1 && html`<${Attempts} d=${d} />`}
    <section><h3>${t('request')}</h3>${d.request ? html`<${Code} wrap text=${mask(requestText(d))} what=${t('request')} />` : html`<p class="muted">${t(d.tried_at ? 'notKept' : 'untried')}</p>`}</section>
    ${d.tried_at && html`<section><h3>${t('response')}</h3><${Code} wrap text=${`${outcome(d)}${d.answer ? `\n\n${d.answer}` : ''}`} what=${t('response')} /></section>`}
    ${d.request && html`<details><summary>${t('verify')}</summary>${verifier && html`<${CodeTabs} shell="Shell" write=${verifier(d)}
      hint=${t(d.webhook ? 'verifyHint' : 'verifyCallback', { name: html`<code>$WEBHOOK_SECRET</code>`, channel: html`<code>parley channel secret ${d.channel}</code>` })} />`}</details>`}`;
}

// The programs that check a signature are seldom wanted: they are fetched when a delivery is shown.
function useVerifier() {
  const [verifier, setVerifier] = useState(null);
  useEffect(() => { import('./webhooks-verify.js').then((module) => setVerifier(() => module.verifier), () => {}); }, []);
  return verifier;
}

/** Each attempt with its own number: some may be missing, and those before a replay are there. */
const Attempts = ({ d }) => html`<section><h3>${t('attempts')}</h3>
  <ol class="tries">${d.history.map((a) => html`<li key=${a.number} value=${a.number}><div class="row"><${Time} at=${a.at} /><${Badge} tone=${a.problem ? 'bad' : 'good'}>${outcome(a)}<//></div>
    ${a.answer && html`<bdi class="clip muted" title=${a.answer}>${a.answer}</bdi>`}</li>`)}</ol>
  ${d.history.at(-1).number !== d.attempts && html`<p class="muted">${t('countsOn')}</p>`}</section>`;

function sentence(d) {
  const values = { n: d.attempts, all: attemptsOf(d), took: duration(d.took_ms), problem: d.problem.replace(/^\w+: ?/, '') || outcome(d) };
  if (d.state === 'delivered') return t('wasTaken', values);
  if (d.state === 'failed') return t('wasLost', values);
  return d.tried_at ? html`${t('willRetry', values)} ${d.next_at && t('inTime', { time: html`<${Left} until=${d.next_at} />` })}` : t('willTry');
}

const requestText = ({ request: { method, url, headers }, body }) =>
  `${method} ${url}\n${Object.entries(headers).sort().map(([name, value]) => `${name}: ${value}`).join('\n')}${body ? `\n\n${body}` : ''}`;
