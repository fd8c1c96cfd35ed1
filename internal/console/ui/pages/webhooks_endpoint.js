// One webhook: how it goes, its secret, a test, and the form that makes and changes it.
import { html, useState } from '../view.js';
import { api } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { channels, channelBy } from '../state.js';
import { tick } from '../checklist.js';
import { texts, percent } from '../i18n.js';
import { Facts, Note, Loading } from '../parts/card.js';
import { Button, Copy, useWork } from '../parts/button.js';
import { Dialog, confirm } from '../parts/dialog.js';
import { AsCode, Code } from '../parts/code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { Time } from '../parts/time.js';
import { toast } from '../parts/toast.js';
import { Result, outcome, acts } from './webhooks_deliveries.js';

const t = texts('webhooks');
const core = texts('core');

export const types = ['message.received', 'message.status', 'message.reaction', 'message.deleted', 'message.media', 'poll.vote', 'channel.status', 'channel.pairing', 'otp.approved', 'otp.failed', 'otp.expired', 'otp.paused', 'otp.guessing', 'group.changed', 'webhook.gap'];

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
  return html`
    <p class="answer">${!w.enabled ? t('isOff', { reason: w.reason }) : w.failing_since ? t('isFailing', { n: w.failures, time: html`<${Time} at=${w.failing_since} ago />` }) : t('isOn')}</p>
    ${w.warning && html`<${Note} kind="warn">${w.warning}<//>`}
    <div class="row">
      <${Button} need="operator" small icon=${w.enabled ? 'stop' : 'play'} onClick=${turn}>${t(w.enabled ? 'turnOff' : 'turnOn')}<//>
      <${Button} need="operator" small icon="settings" onClick=${() => setQuery({ edit: w.id })}>${t('edit')}<//>
      <${Button} small icon="messages" href=${href('/webhooks/deliveries', { webhook: w.id })}>${t('deliveries')}<//>
      <${AsCode} small request=${{ path: `/api${path}` }} />
      <${Button} need="operator" small kind="danger" icon="trash" onClick=${remove}>${t('delete')}<//>
    </div>
    <${Facts} rows=${[
      [t('address'), html`<bdi>${w.url}</bdi> <${Copy} text=${w.url} what=${t('address')} />`],
      ['ID', html`<span class="mono">${w.id}</span> <${Copy} text=${w.id} what="ID" />`],
      [core('page.channel'), w.channel || t('every')],
      [t('mediaLinks'), w.media_links === 'signed' && t('signedLinks')],
      [t('events'), w.events.length ? w.events.join(', ') : t('every')],
      [t('day'), !w.failing_since && figures?.all > 0 && `${percent(figures.good, figures.all)} (${figures.good} / ${figures.all})`],
      [t('last'), figures?.last && html`<a href=${href('/webhooks/deliveries', { open: figures.last.id })}><${Result} d=${figures.last} /></a>`],
      [t('created'), html`<${Time} at=${w.created_at} ago />`],
    ]} />
    <section><h3>${t('test')}</h3><${Test} w=${w} path=${path} /></section>
    <section><h3>${t('secret')}</h3><${Secret} path=${path} /></section>`;
}

/** A test event to this address alone, or something that really happens on the sandbox. */
function Test({ w, path }) {
  const [kind, setKind] = useState('webhook.test');
  const [result, setResult] = useState(null);
  const sandbox = w.channel ? channelBy(w.channel)?.network === 'sandbox' && w.channel : channels.value.find((one) => one.network === 'sandbox' && one.status === 'WORKING')?.code;
  const offered = sandbox ? Object.keys(acts).filter((type) => !w.events.length || w.events.includes(type)) : [];
  const [running, run] = useWork(async () => {
    setResult(null);
    if (kind !== 'webhook.test') {
      await acts[kind](sandbox, t('hello'));
      toast(t('happened', { type: kind }), { kind: 'good', action: { label: t('deliveries'), run: () => setQuery({ webhook: w.id, state: 'all' }) } });
      return;
    }
    const { success, data } = await api.post(`${path}/test`);
    if (success) tick('webhook');
    setResult({ success, ...data });
  });
  return html`<div class="row nowrap">
      <select aria-label=${t('event')} value=${kind} onChange=${(event) => setKind(event.target.value)}>
        <option value="webhook.test">${t('testEvent')}</option>
        ${offered.length > 0 && html`<optgroup label=${t('onSandbox', { channel: sandbox })}>${offered.map((type) => html`<option key=${type} value=${type}>${type}</option>`)}</optgroup>`}
      </select>
      <${Button} need="operator" icon="send" busy=${running} onClick=${run}>${t('sendTest')}<//></div>
    <div aria-live="polite" class="stack">${result && html`<${Note} kind=${result.success ? 'good' : 'bad'} title=${outcome({ ...result, tried_at: true })}>${result.problem.replace(/^\w+: /, '')}<//>
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
    <div class="row">${secret ? html`<${Button} small icon="hidden" onClick=${() => setSecret(null)}>${t('hide')}<//>` : html`<${Button} need="operator" small icon="eye" onClick=${show}>${t('reveal')}<//>`}
      <${Button} need="operator" small icon="refresh" onClick=${rotate}>${t('rotate')}<//></div>`;
}

/** The dialog that ?new= and ?edit= open. */
export function EndpointForm({ webhooks, onDone }) {
  const { new: fresh, edit } = query.value;
  const close = () => setQuery({ new: null, edit: null });
  const webhook = webhooks?.find((one) => one.id === edit);
  if (!fresh && !edit) return null;
  return html`<${Dialog} open title=${t(edit ? 'edit' : 'add')} onClose=${close}>${edit && !webhook ? html`<${Loading} />` : html`<${Fields} key=${edit} webhook=${webhook} close=${close} onDone=${onDone} />`}<//>`;
}

function Fields({ webhook: w, close, onDone }) {
  const [made, setMade] = useState(null);
  const some = w?.events.length > 0;
  const form = useForm({ url: w?.url || '', channel: w?.channel || '', which: some ? 'some' : 'all', events: new Set(w?.events), signed: w?.media_links === 'signed' }, async (values) => {
    const { data } = w ? await api.patch(`/manage/webhooks/${w.id}`, wanted(values)) : await api.post('/manage/webhooks', wanted(values));
    if (w) close(); else setMade(data);
    await onDone();
  });
  const wanted = ({ url, channel, which, events, signed }) => ({ url, ...((signed || w) && { media_links: signed ? 'signed' : 'token' }), ...(channel && !w && { channel }), ...((which === 'some' || w) && { events: which === 'some' ? types.filter((type) => events.has(type)) : [] }) });
  const { values, errors } = form;
  if (made) {
    return html`<${Note} kind="good" title=${t('added')}>${t('addedText')}<//><h3>${t('secret')}</h3><${Code} wrap text=${made.secret} what=${t('secret')} />
      <div class="row"><${Button} kind="primary" onClick=${() => setQuery({ new: null, webhook: made.id })}>${t('tryIt')}<//></div>`;
  }
  const turn = (type) => () => { const next = new Set(values.events); if (!next.delete(type)) next.add(type); form.set('events', next); };
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="url" type="url" label=${t('address')} hint=${t('addressHint')} required autofocus autocomplete="off" />
    ${w ? html`<p class="hint">${t('channelStays', { channel: w.channel || t('every') })}</p>` : html`<${Field} form=${form} name="channel" type="select" label=${core('page.channel')} options=${[['', t('everyChannel')], ...channels.value.map((one) => one.code)]} />`}
    <${Field} form=${form} name="which" path="events" type="radio" label=${t('events')} options=${[['all', t('everyEvent')], ['some', t('onlyThese')]]} />
    ${values.which === 'some' && html`<div class="event-list" role="group" aria-label=${t('onlyThese')}>${types.map((type) => html`<label key=${type} class="choice"><input type="checkbox" checked=${values.events.has(type)} onChange=${turn(type)} /><span class="mono">${type}</span></label>`)}</div>`}
    <${Field} form=${form} name="signed" path="media_links" type="checkbox" label=${t('signedLinks')} />
    <div class="row"><${Submit} need="operator" form=${form} disabled=${values.which === 'some' && !values.events.size && !errors.events}>${w ? core('save') : t('add')}<//>
      <${AsCode} request=${{ method: w ? 'PATCH' : 'POST', path: `/api/manage/webhooks${w ? `/${w.id}` : ''}`, body: wanted(values) }} /></div>
  <//>`;
}
