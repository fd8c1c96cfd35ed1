// One webhook: how it goes, its secret, and a test.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, setQuery } from '../router.js';
import { channelBy, sandboxes, now } from '../state.js';
import { tick } from '../checklist.js';
import { texts, num, percent } from '../i18n.js';
import { Facts, Note, Loading } from '../parts/card.js';
import { Button, Copy, useWork } from '../parts/button.js';
import { confirm } from '../parts/dialog.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { EventType, eventName } from '../parts/status.js';
import { Time, Said } from '../parts/time.js';
import { toast } from '../parts/toast.js';
import { Trends } from '../parts/trends.js';
import { Result, outcome } from '../parts/delivery.js';
import { isDue, useSoon } from '../parts/delivery_soon.js';
import { acts } from './webhooks_acts.js';

const t = texts('webhooks');
const core = texts('core');

export function Endpoint({ webhook: w, figures, onChange, onGone }) {
  const path = `/manage/webhooks/${w.id}`;
  const turn = async () => { await api.patch(path, { enabled: !w.enabled }); await onChange(); };
  const remove = async () => {
    if (!await confirm({ title: t('delete'), text: t('deleteText', { url: w.url }), action: t('delete'), danger: true })) return;
    await api.del(path);
    onGone();
    toast(t('deleted'), { kind: 'good' });
    await onChange();
  };
  const recent = useRecent(w);
  const retry = async () => {
    const { data } = await api.post(`${path}/retry`);
    toast(t('retried', { n: data.waiting }), { kind: 'good' });
    recent.lookAgain();
    await Promise.all([recent.reload(), onChange()]);
  };
  return html`
    <p class="answer">${!w.enabled ? t('isOff', { reason: html`<${Said} text=${w.reason} />` }) : w.failing_since
      ? t('isFailing', { n: w.failures, time: html`<${Time} at=${w.failing_since} ago />` }) : t('isOn')}</p>
    ${w.warning && html`<${Note} kind="warn"><${Said} text=${w.warning} /><//>`}
    ${recent.data?.problem && html`<${Note} kind=${w.failing_since ? 'bad' : 'warn'} title=${t('lastError')}>
      <a href=${href('/webhooks/deliveries', { webhook: w.id, open: recent.data.problem.id })}>
      <${Time} at=${recent.data.problem.tried_at} ago /></a> <${Said} text=${recent.data.problem.problem.replace(/^\w+: /, '')} /><//>`}
    <div class="row">
      ${w.enabled && recent.data?.waiting > 0 && html`<${Button} need="operator" small kind="primary" icon="refresh" onClick=${retry}>
        ${t('retryNow', { n: recent.data.waiting })}<//>`}
      <${Button} need="operator" small icon=${w.enabled ? 'stop' : 'play'} onClick=${turn}>${t(w.enabled ? 'turnOff' : 'turnOn')}<//>
      <${Button} need="operator" small icon="settings" onClick=${() => setQuery({ edit: w.id })}>${t('edit')}<//>
      <${Button} small icon="messages" href=${href('/webhooks/deliveries', { webhook: w.id })}>${t('deliveries')}<//>
      <${AsCode} small request=${{ path: `/api${path}` }} />
      <${Button} need="operator" small kind="danger" icon="trash" onClick=${remove}>${t('delete')}<//>
    </div>
    <${Facts} rows=${[
      [t('address'), html`<bdi>${w.url}</bdi> <${Copy} text=${w.url} what=${t('address')} />`],
      ['ID', html`<span class="mono">${w.id}</span> <${Copy} text=${w.id} what="ID" />`],
      [core('page.channel'), w.channel ? html`<a href=${href(`/channels/${w.channel}`)}>${w.channel}</a>` : t('every')],
      [t('mediaLinks'), w.media_links === 'signed' && t('signedLinks')],
      [t('events'), w.events.length ? html`<ul>${w.events.map((type) => html`<li key=${type}><${EventType} type=${type} /></li>`)}</ul>`
        : t('every')],
      [t('day'), figures?.all > 0 && `${percent(figures.good, figures.all)} (${num(figures.good)} / ${num(figures.all)})`],
      [t('waiting'), figures?.waiting > 0 && html`${num(figures.waiting)} ·
        ${t('oldest', { time: html`<${Time} at=${figures.oldest} ago />` })}`],
      [t('created'), html`<${Time} at=${w.created_at} ago />`],
    ]} />
    <${Trends} webhook=${w.id} />
    <${Recent} w=${w} load=${recent} />
    <section><h3>${t('test')}</h3><${Test} w=${w} path=${path} /></section>
    <section><h3>${t('secret')}</h3><${Secret} path=${path} /></section>`;
}

const shown = 8; // deliveries in the drawer

/** The newest deliveries of a webhook, how many wait, and the last failed attempt. */
function useRecent(w) {
  const load = useLoad(async () => {
    const ask = (more) => api.get('/manage/deliveries', { query: { webhook: w.id, limit: shown, ...more } });
    const [newest, waiting, retrying, failed] = await Promise.all([ask(), ask({ state: 'waiting', limit: 1 }), ask({ state: 'retrying' }),
      ask({ state: 'failed', limit: 1 })]);
    // While an address fails, only its oldest deliveries are tried.
    const oldest = retrying.meta.total > shown ? await ask({ state: 'retrying', offset: retrying.meta.total - shown }) : retrying;
    const problems = [newest, retrying, oldest, failed].flatMap((page) => page.data).filter((one) => one.problem);
    const [problem] = problems.sort((a, b) => Date.parse(b.tried_at) - Date.parse(a.tried_at));
    return { newest: newest.data, waiting: waiting.meta.total, problem };
  }, [w.id, w.failures, w.enabled, now.value], { on: ['message.'] });
  const lookAgain = useSoon(load.data?.newest.some(isDue), load.data, load.reload);
  return { ...load, lookAgain };
}

const Recent = ({ w, load: { data } }) => html`<section><h3>${t('recent')}</h3>
  ${!data ? html`<${Loading} rows=${3} />` : !data.newest.length ? html`<p class="muted">${t('noDeliveries')}</p>`
    : html`<ul class="recent">${data.newest.map((d) =>
      html`<li key=${d.id}><a href=${href('/webhooks/deliveries', { webhook: w.id, open: d.id })}>
        <${Time} at=${d.created_at} /> <span title=${d.type}>${eventName(d.type)}</span></a> <${Result} d=${d} /></li>`)}</ul>`}
</section>`;

/** A test event to this address alone, or something that really happens on the sandbox. */
function Test({ w, path }) {
  const [kind, setKind] = useState('webhook.test');
  const [result, setResult] = useState(null);
  const sandbox = w.channel ? channelBy(w.channel)?.simulated && w.channel
    : sandboxes.value.find((one) => one.status === 'WORKING')?.code;
  const offered = sandbox ? Object.keys(acts).filter((type) => !w.events.length || w.events.includes(type)) : [];
  const [running, run] = useWork(async () => {
    setResult(null);
    if (kind !== 'webhook.test') {
      await acts[kind](sandbox, t('hello'));
      toast(t('happened', { type: eventName(kind) }),
        { kind: 'good', action: { label: t('deliveries'), run: () => setQuery({ webhook: w.id, state: 'all' }) } });
      return;
    }
    const { success, data } = await api.post(`${path}/test`);
    if (success) tick('webhook');
    setResult({ success, ...data });
  });
  return html`<div class="row nowrap">
      <select aria-label=${t('event')} value=${kind} onChange=${(event) => setKind(event.target.value)}>
        <option value="webhook.test">${t('testEvent')}</option>
        ${offered.length > 0 && html`<optgroup label=${t('onSandbox', { channel: sandbox })}>
          ${offered.map((type) => html`<option key=${type} value=${type}>${eventName(type)} (${type})</option>`)}</optgroup>`}
      </select>
      <${Button} need="operator" icon="send" busy=${running} onClick=${run}>${t('sendTest')}<//></div>
    <div aria-live="polite" class="stack">
      ${result && html`<${Note} kind=${result.success ? 'good' : 'bad'} title=${outcome({ ...result, tried_at: true })}>
        <${Said} text=${result.problem.replace(/^\w+: /, '')} /><//>
      ${result.answer && html`<${Code} wrap text=${result.answer} what=${t('answer')} />`}`}</div>
    <p class="hint">${t('trigger', { command: html`<code>parley trigger otp.approved</code>` })}</p>`;
}

export function Secret({ path, fresh }) {
  const [secret, setSecret] = useState(fresh);
  const show = async () => setSecret((await api.get(`${path}/secret`)).data);
  const rotate = async () => {
    if (!await confirm({ title: t('rotate'), text: t('rotateText'), action: t('rotate') })) return;
    setSecret((await api.post(`${path}/rotate`)).data);
  };
  return html`${secret ? html`<${Code} wrap text=${secret.secret} what=${t('secret')} />` : html`<p class="muted">${t('secretText')}</p>`}
    ${secret?.old_until && html`<p class="hint">${t('oldUntil', { time: html`<${Time} at=${secret.old_until} />` })}</p>`}
    <div class="row">${secret ? html`<${Button} small icon="hidden" onClick=${() => setSecret(null)}>${t('hide')}<//>`
      : html`<${Button} need="operator" small icon="eye" onClick=${show}>${t('reveal')}<//>`}
      <${Button} need="operator" small icon="refresh" onClick=${rotate}>${t('rotate')}<//></div>`;
}
