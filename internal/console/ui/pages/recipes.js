// Twelve requests to try: filled in, run with the rights of this session, and as a program.
import { html, signal, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { manyChannels, currentChannel, channelsLoaded, pinned } from '../state.js';
import { texts, duration } from '../i18n.js';
import { Head, Card, Empty, Loading, Note } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { Code } from '../parts/code.js';
import { CodeTabs } from '../parts/snippet.js';
import { useForm, Form, Field } from '../parts/form.js';
import { Badge } from '../parts/status.js';
import { number, mask } from '../parts/who.js';

const t = texts('recipes');
const core = texts('core');

const latest = 20; // messages that can be answered by choosing one

const to = signal(''); // whom the reader wrote to last, whatever the recipe

export default function Page({ route }) {
  const recipe = recipes.find((one) => one.id === route.params.recipe) || recipes[0];
  const channel = currentChannel.value;
  const sandbox = channel?.simulated;
  return html`
    <${Head} title=${core('page.recipes')} lead=${channel && t(sandbox ? 'lead' : 'leadReal', { channel: channel.code })} actions=${html`
      ${sandbox && !pinned.value && html`<span class="hide-small"><${Button} icon="pin" onClick=${() => { pinned.value = true; }}>
        ${core('pinPhone')}<//></span>`}
      <${Button} icon="window" href="/docs" target="_blank">${core('docs')}<//>`} />
    <nav class="chips" aria-label=${t('recipes')}>${recipes.map(({ id }) => html`
      <a key=${id} class="chip" href=${href(`/api-recipes/${id}`)} aria-current=${id === recipe.id ? 'page' : undefined}>
        ${t(`recipe.${id}`)}</a>`)}</nav>
    ${channel ? html`<${Recipe} key=${`${recipe.id} ${channel.code}`} recipe=${recipe} channel=${channel.code} sandbox=${sandbox} />`
      : channelsLoaded.value ? html`<${Empty} icon="api" title=${t('noChannel')}>
        <${Button} kind="primary" href=${href('/channels', { new: 'sandbox' })}>${t('toChannels')}<//><//>` : html`<${Loading} />`}`;
}

function Recipe({ recipe, channel, sandbox }) {
  const [answer, setAnswer] = useState(null);
  const wantsMessage = recipe.fields.find(([, type]) => type === 'message')?.[0];
  const found = useLoad(async () =>
    (wantsMessage ? (await api.get('/manage/messages', { query: { channel, limit: latest } })).data : []), []);
  const form = useForm(toValues(recipe, to.peek() || (sandbox ? '6281234567890' : '')), async (values) => {
    const { path, ...options } = toRequest(recipe, values, newest);
    const got = await api.send(recipe.method, path, { ...options, channel });
    let body = null;
    try { body = JSON.parse(got.body); } catch { /* then it is shown as it came */ }
    setAnswer({ ...got, json: body });
    if (got.status >= 400) throw { errors: body?.errors };
  });
  const { values } = form;
  // A reply belongs into the chat of what it answers.
  const messages = found.data?.filter((row) => !('contact_id' in values) || number(row.contact_id) === number(values.contact_id));
  const newest = messages?.[0]?.id;
  const { path, query, body } = toRequest(recipe, values, newest);
  const request = { method: recipe.method, path: `/api${path}${query ? `?${new URLSearchParams(query)}` : ''}`, headers: manyChannels.value
    ? { 'X-Channel': channel } : {}, body };
  const change = { ...form, set: (name, value) => { if (name === 'contact_id') to.value = value; form.set(name, value); } };
  return html`<div class="grid2">
    <${Card} title=${t(`recipe.${recipe.id}`)} actions=${html`<code>${recipe.method} /api${recipe.path}</code>`}>
      <p class="muted">${t(`about.${recipe.id}`)}</p>
      <${Form} form=${change}>
        ${!sandbox && recipe.method !== 'GET' && html`<${Note} kind="warn">${t('realPhone')}<//>`}
        ${recipe.fields.map((field) => html`<${Input} key=${field[0]} form=${change} field=${field} messages=${messages} />`)}
        <div class="row"><${Button} kind="primary" icon="play" type="submit" busy=${form.busy}>${t('run')}<//><span class="hint">
          ${t('session')}</span></div>
      <//>
      ${form.error?.message && html`<${Note} kind="bad">${form.error.message}<//>`}
    <//>
    <div class="stack">
      <${Answer} answer=${answer} channel=${channel} secret=${!sandbox && recipe.id === 'link'} />
      <${Card} title=${core('asCode')}><${CodeTabs} request=${request} /><//>
    </div>
  </div>`;
}

/** One field of the table, with its list where messages can be chosen from. */
function Input({ form, field: [name, type, , more], messages }) {
  const common = { form, name, label: t(`field.${name}`), ...more };
  if (type === 'message') {
    const id = form.values[name] || messages?.[0]?.id;
    const one = messages?.find((row) => row.id === id || row.message_id === id);
    return html`<${Field} ...${common} list="recent" placeholder=${messages?.[0]?.id} autocomplete="off" spellcheck=${false}
        hint=${one ? `“${mask(one.body || one.type)}”` : messages && !messages.length ? t('noMessage') : t('whichMessage')} />
      <datalist id="recent">${messages?.map((row) => html`<option key=${row.id} value=${row.id}>${mask(row.body || row.type)}</option>`)}
        </datalist>`;
  }
  const inputs = { contact: 'tel', lines: 'textarea' };
  const hints = { lines: t('perLine'), url: t(`reach.${name}`) };
  return html`<${Field} ...${common} type=${inputs[type] || type} hint=${hints[type]} autocomplete="off" />`;
}

function Answer({ answer, channel, secret }) {
  if (!answer) return html`<${Card} title=${t('answer')}><p class="muted">${t('notRun')}</p><//>`;
  const { status, ms, json, headers } = answer;
  // On a real network a login link is for its owner alone; on a shared screen all that people wrote is.
  const show = (key, value) => (typeof value !== 'string' ? value : secret && /^(code|link|app_uri)$/.test(key) ? '••••••' : mask(value));
  const id = json?.data?.message_id;
  return html`<${Card} title=${t('answer')} data-t="answer"
    actions=${html`<span role="status" class="row"><${Badge} tone=${status < 300 ? 'good' : 'bad'}>${status}<//><span class="mono-num">
      ${duration(ms)}</span></span>`}>
    <${Code} wrap text=${json ? JSON.stringify(json, show, 2) : mask(answer.body)} what="JSON" />
    <details><summary>${t('headers', { n: headers.length })}</summary>
      <${Code} wrap text=${headers.map((pair) => pair.join(': ')).join('\n')} what=${t('headers', { n: headers.length })} /></details>
    ${id && html`<p><a href=${href('/messages', { open: `${channel}.${id}` })}>${t('follow')}</a></p>`}
  <//>`;
}

// The recipes: what each asks, of whom, and with which fields.

const contact = ['contact_id', 'contact', '', { required: true }];

/** {id, method, path, fields: [name in the request, type, its initial value, more for the input]}; body where it is not just the fields. */
export const recipes = [
  { id: 'text', method: 'POST', path: '/send-message/text',
    fields: [contact, ['message', 'textarea', 'Halo dari Parley 👋', { required: true }]] },
  { id: 'image', method: 'POST', path: '/send-message/image', fields: [contact, ['file.url', 'url', '', { required: true }],
    ['caption', 'text', 'Selamat pagi']] },
  { id: 'voice', method: 'POST', path: '/send-message/voice', fields: [contact, ['audioUrl', 'url', '', { required: true }]] },
  { id: 'location', method: 'POST', path: '/send-message/location', fields: [contact, ['latitude', 'text', '-6.2088', { required: true }],
    ['longitude', 'text', '106.8456', { required: true }], ['title', 'text', 'Toko Ayu']] },
  { id: 'poll', method: 'POST', path: '/send-message/poll', fields: [contact, ['title', 'text', 'Jam berapa?', { required: true }],
    ['options', 'lines', '10.00\n14.00\n19.00', { required: true }], ['is_multiple_answer', 'checkbox', false]] },
  {
    id: 'pool', method: 'POST', path: '/send-message/pool',
      fields: [contact, ['texts', 'lines', 'Pesanan #1042 siap.\nBisa diambil sampai jam 17.00.'], ['images', 'lines', '']],
    body: ({ contact_id: id, texts = [], images = [] }) =>
      ({ contact_id: id, pools: [['text', texts], ['image', images]].filter(([, data]) => data.length)
        .map(([type, data]) => ({ type, data })) }),
  },
  { id: 'reply', method: 'POST', path: '/send-message/text', fields: [contact, ['reply_to', 'message', '', { required: true }],
    ['message', 'textarea', 'Siap!', { required: true }]] },
  { id: 'react', method: 'PUT', path: '/send-message/reaction', fields: [['message_id', 'message', '', { required: true }],
    ['reaction', 'text', '❤️']], body: (body) => ({ reaction: '', ...body }) },
  { id: 'code', method: 'POST', path: '/otp/code/request',
    fields: [contact, ['name', 'text', 'Toko Ayu'], ['length', 'number', 6, { min: 4, max: 6 }],
      ['expires', 'number', 300, { min: 30, max: 3600 }]] },
  { id: 'link', method: 'POST', path: '/otp/link/request',
    fields: [contact, ['name', 'text', 'Toko Ayu'], ['expires', 'number', 300, { min: 60, max: 86400, required: true }]] },
  { id: 'history', method: 'GET', path: '/chat/detail', fields: [contact, ['limit', 'number', 10, { min: 1, max: 100 }]] },
  { id: 'health', method: 'GET', path: '/channel/health', fields: [] },
];

/** What a recipe's form begins with. */
export const toValues = (recipe, to) =>
  Object.fromEntries(recipe.fields.map(([name, type, value]) => [name, type === 'contact' ? to : value]));

const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean);

const read = {
  contact: (text) => text && `${number(text)}@c.us`,
  lines: (text) => lines(text),
};

/**
 * The request that filled-in fields make: {path, query} or {path, body}. What is empty is left out. newest: the message
 * that an empty choice means.
 */
export function toRequest(recipe, values, newest = '') {
  const body = {};
  for (const [name, type] of recipe.fields) {
    const value = read[type] ? read[type](values[name]) : values[name] || (type === 'message' ? newest : '');
    if (value === '' || value === false || value?.length === 0) continue;
    const [outer, inner] = name.split('.');
    if (inner) body[outer] = { ...body[outer], [inner]: value };
    else body[outer] = value;
  }
  const whole = recipe.body ? recipe.body(body) : body;
  return recipe.method === 'GET' ? { path: recipe.path, query: whole } : { path: recipe.path, body: whole };
}
