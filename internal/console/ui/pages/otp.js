// One-time passwords as one story: what the backend asks, what the phone shows, what the login page does with it.
import { html, css, useState, useEffect, useRef } from '../view.js';
import { api } from '../api.js';
import { href, setQuery, query } from '../router.js';
import { chosen, selected, channelsLoaded } from '../state.js';
import { texts } from '../i18n.js';
import { Head } from '../parts/head.js';
import { Card, Note, Empty, Loading, Failed } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { Tabs } from '../parts/tabs.js';
import { AsCode, Code } from '../parts/code.js';
import { useForm, Form, Field, Submit, contactOf } from '../parts/form.js';
import { number, mask } from '../parts/who.js';
import { usePhones, sandboxes, stranger, nameOf } from './phone-list.js';
import { Chat } from './phone-chat.js';
import { useStory, Story } from './otp-story.js';
import { LoginPage } from './otp-login.js';
import { Trouble } from './otp-trouble.js';

const t = texts('otp');

css('pages/phone.css');
css('pages/otp.css');

export default function Page({ route }) {
  const channel = selected.value ? chosen.value : sandboxes()[0] || chosen.value;
  if (!channel) return html`<${Head} title=${t('title')} />${channelsLoaded.value ? html`<${Empty} icon="otp" title=${t('noChannel')}><${Button} kind="primary" href=${href('/channels')}>${t('toChannels')}<//><//>` : html`<${Loading} />`}`;
  return html`<${Playground} key=${channel.code} channel=${channel} kind=${route.query.kind === 'link' ? 'link' : 'code'} />`;
}

function Playground({ channel, kind }) {
  const real = channel.network !== 'sandbox';
  const phones = usePhones(channel.code);
  const first = phones.list?.find((one) => one.channel === channel.code)?.number || '';
  const [draft, setDraft] = useState('');
  const [codes, setCodes] = useState([]);
  const story = useStory(channel.code);
  const { run } = story;
  const digits = run ? number(run.contact) : number(query.value.to) || first;
  const device = phones.find(digits, channel.code) || stranger(digits, channel.code);
  const phoneColumn = useRef();

  const shown = useRef([]); // what is on the phone's screen
  const request = async (body) => {
    const after = shown.current.at(-1)?.id;
    const { data } = await api.post(`/otp/${kind}/request`, body, { channel: channel.code });
    setCodes([]);
    setDraft('');
    story.begin({ kind, after, contact: body.contact_id, answer: data, callback: Boolean(body.callback), prompt: data.link && promptOf(data.link) });
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
  if (!real && !phones.list) return html`<${Head} title=${t('title')} />${phones.load.error ? html`<${Failed} load=${phones.load} />` : html`<${Loading} rows=${5} />`}`;
  const common = { channel: channel.code, kind, story, real };
  return html`
    <${Head} title=${t('title')} lead=${t(real ? 'leadReal' : 'lead', { channel: channel.code })} />
    <${Tabs} label=${t('title')} current=${kind} tabs=${['code', 'link'].map((id) => ({ id, label: t(`kind.${id}`), href: href('/otp', { kind: id === 'link' ? id : null }) }))} />
    <div class="otp-columns">
      <${Backend} key=${kind} ...${common} first=${digits} request=${request} />
      <div class="otp-phone" ref=${phoneColumn} role="region" aria-label=${t('phone')}>
        <h2>${t('phone')} <span class="muted">${nameOf(device)}</span></h2>
        ${real ? html`<${Note}>${t('realPhone')}<//>` : digits && html`<div class="screen"><${Chat} key=${digits} channel=${channel.code} device=${device} draft=${draft} onDraftSent=${() => setDraft('')} onMessages=${seen} /></div>`}
      </div>
      <${LoginPage} key=${run?.answer.id} ...${common} codes=${codes} openPhone=${openPhone} tap=${tap} request=${request} contact=${`${digits}@c.us`} />
    </div>
    <${Story} story=${story} />
    <${Trouble} ...${common} codes=${codes} phones=${phones} digits=${digits} request=${request} />`;
}

const promptOf = (link) => new URL(link).searchParams.get('text');

/** The form of a request, the request as code and what was answered to it. */
function Backend({ channel, kind, story, real, first, request }) {
  const [sure, setSure] = useState(false);
  const link = kind === 'link';
  const bodyOf = ({ to, name, expires, length, letters, callback }) => ({
    contact_id: `${number(to)}@c.us`,
    ...(name && { name }),
    expires: Number(expires),
    ...(!link && Number(length) !== 6 && { length: Number(length) }),
    ...(!link && letters && { useLetter: true, allCapital: true }),
    ...(link && callback && { callback: { success: callback, failed: callback } }),
  });
  const form = useForm({ to: first, name: '', expires: 300, length: 6, letters: false, callback: '' }, (values) => request({ ...bodyOf(values), contact_id: contactOf(values.to) }));
  useEffect(() => setQuery({ to: number(form.values.to) === first ? query.value.to : number(form.values.to) }, { replace: true }), [form.values.to]);
  const body = bodyOf(form.values);
  const code = { method: 'POST', path: `/api/otp/${kind}/request`, headers: { 'X-Channel': channel }, body };
  return html`<${Card} title=${t('backend')} actions=${html`<${AsCode} small request=${code} />`}>
    <${Form} form=${form}>
      ${real && html`<${Note} kind="warn"><label class="choice"><input type="checkbox" checked=${sure} onChange=${(event) => setSure(event.target.checked)} /><span>${t('sure')}</span></label><//>`}
      <${Field} form=${form} name="to" path="contact_id" type="tel" label=${t('to')} required />
      <div class="pair"><${Field} form=${form} name="name" label=${t('name')} maxlength="60" />
        <${Field} form=${form} name="expires" type="number" label=${t('expires')} min=${link ? 60 : 30} max=${link ? 86400 : 3600} /></div>
      ${link ? html`<${Field} form=${form} name="callback" path="callback.success" type="url" label=${t('callback')} hint=${t('callbackHint', { example: 'localhost:3000/login' })} />`
        : html`<div class="pair"><${Field} form=${form} name="length" type="number" label=${t('length')} min="4" max="6" /><${Field} form=${form} name="letters" type="checkbox" label=${t('letters')} /></div>`}
      <${Submit} form=${form} icon="send" disabled=${real && !sure}>${t(`ask.${kind}`)}<//>
    <//>
    ${story.run?.kind === kind && html`<h3>${t('answer')}</h3><${Code} wrap text=${mask(JSON.stringify(real ? hidden(story.run.answer) : story.run.answer, null, 2))} what="JSON" />`}
  <//>`;
}

// On a real network nobody but its owner sees a code.
const hidden = (answer) => Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, /^(code|link|app_uri)$/.test(key) ? '••••••' : value]));
