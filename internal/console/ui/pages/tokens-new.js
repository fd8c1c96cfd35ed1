// A new token: what it may do, and its text, which is shown this once.
import { html, useState } from '../view.js';
import { api } from '../api.js';
import { query, setQuery } from '../router.js';
import { channels, chosen, server } from '../state.js';
import { tick } from '../checklist.js';
import { texts, duration } from '../i18n.js';
import { Note } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode, Code } from '../parts/code.js';
import { Dialog, confirm } from '../parts/dialog.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';

const t = texts('tokens');
const core = texts('core');

const lives = [30, 90, 365]; // days
const dayLong = 86_400_000;

/** The dialog that ?new= opens. */
export function NewToken({ onDone }) {
  const [made, setMade] = useState(null);
  const [taken, setTaken] = useState(false);
  const close = async () => {
    // What is lost here cannot be shown again.
    if (made && !taken && !await confirm({ title: t('leave'), text: t('leaveText'), action: t('leaveNow'), danger: true })) return;
    setMade(null);
    setTaken(false);
    setQuery({ new: null });
  };
  const done = (token) => { setMade(token); tick('token'); onDone(); };
  return html`<${Dialog} wide=${Boolean(made)} open=${Boolean(query.value.new)} title=${made ? t('ready', { name: made.name || made.id }) : t('create')} onClose=${close}
    foot=${made && html`<${Button} kind="primary" onClick=${close}>${core('close')}<//>`}>
    ${made ? html`<${Once} token=${made} onTaken=${() => setTaken(true)} />` : html`<${NewForm} onDone=${done} />`}
  <//>`;
}

const wanted = ({ name, kind, channel, days }) => ({
  kind, ...(name && { name }), ...(kind === 'channel' && { channel }),
  ...(days && { expires_at: new Date(Date.now() + days * dayLong).toISOString().replace(/\.\d+/, '') }),
});

function NewForm({ onDone }) {
  const codes = channels.value.map((one) => one.code);
  const form = useForm({ name: '', kind: codes.length ? 'channel' : 'admin', channel: chosen.value?.code || '', days: '' }, async (values) => {
    const { data } = await api.post('/manage/tokens', wanted(values));
    onDone(data);
  });
  const { kind } = form.values;
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} autofocus autocomplete="off" maxlength="100" />
    <${Field} form=${form} name="kind" label=${t('kind')} type="radio" options=${['channel', 'global', 'admin'].filter((one) => one !== 'channel' || codes.length).map((one) => [one, html`<b>${t(`kind.${one}`)}</b> <span class="muted">${t(`can.${one}`)}</span>`])} />
    ${kind === 'channel' && html`<${Field} form=${form} name="channel" label=${core('page.channel')} type="select" options=${codes} />`}
    <${Field} form=${form} name="days" path="expires_at" label=${t('ends')} type="select" options=${[['', t('never')], ...lives.map((days) => [String(days), t('after', { time: duration(days * dayLong) })])]} />
    ${kind === 'admin' && html`<${Note} kind="warn">${t('adminHint')}<//>`}
    <div class="row"><${Submit} form=${form}>${t('create')}<//><${AsCode} request=${{ method: 'POST', path: '/api/manage/tokens', body: wanted(form.values) }} /></div>
  <//>`;
}

const variables = { channel: 'PARLEY_TOKEN', global: 'PARLEY_GLOBAL_TOKEN', admin: 'PARLEY_ADMIN_TOKEN' };

function Once({ token: { token, kind }, onTaken }) {
  const url = server.value?.url || location.origin;
  const name = variables[kind];
  const path = kind === 'admin' ? '/api/manage/server' : '/api/channel/health';
  const named = kind === 'global' && chosen.value ? ` -H 'X-Channel: ${chosen.value.code}'` : '';
  const ways = {
    token,
    env: `PARLEY_URL=${url}\n${name}=${token}`,
    curl: `curl -sS '${url}${path}'${named} -H 'Authorization: Bearer ${token}'`,
    github: `gh secret set ${name} --body '${token}'`,
  };
  return html`<div class="stack" onClick=${(event) => event.target.closest('button') && onTaken()} onCopy=${onTaken}>
    <${Note} kind="warn" title=${t('once')}>${t('onceText')}<//>
    ${Object.entries(ways).map(([id, text]) => html`<section key=${id} class="stack"><h3>${t(`way.${id}`)}</h3><${Code} wrap text=${text} what=${t(`way.${id}`)} hide=${id === 'token' ? '' : token} /></section>`)}
  </div>`;
}
