// What a phone can send besides text: a place, a file. And the text as code.
import { html, useState, useId } from '../view.js';
import { texts } from '../i18n.js';
import { Dialog } from '../parts/dialog.js';
import { AsCode, CodeTabs } from '../parts/code.js';
import { Tabs, TabPanel } from '../parts/tabs.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { base64, largest } from './phone-file.js';

const core = texts('core');
const t = texts('phone');

export function More({ channel, device, text, say, close }) {
  const [tab, setTab] = useState('location');
  const props = { say, close, request: (body) => ({ method: 'POST', path: `/api/sandbox/phones/${device.number}/send`, headers: { 'X-Channel': channel }, body }) };
  return html`<${Dialog} open title=${t('sendOther')} onClose=${close}>
    <${Tabs} small label=${t('sendOther')} current=${tab} onPick=${setTab} tabs=${['location', 'file', 'code'].map((id) => ({ id, label: id === 'code' ? core('asCode') : t(`kind.${id}`) }))} />
    <${TabPanel} label=${t('sendOther')}>${tab === 'location' ? html`<${Place} ...${props} />` : tab === 'file' ? html`<${File} ...${props} />`
      : html`<${CodeTabs} request=${props.request({ type: 'text', message: text || t('hello') })} />`}<//>
  <//>`;
}

function Place({ say, close, request }) {
  const bodyOf = ({ title, ...at }) => ({ type: 'location', ...at, ...(title && { title }) });
  const form = useForm({ latitude: '-6.2088', longitude: '106.8456', title: 'Jakarta' }, async (values) => { await say(bodyOf(values)); close(); });
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="latitude" label=${t('latitude')} inputmode="decimal" required />
    <${Field} form=${form} name="longitude" label=${t('longitude')} inputmode="decimal" required />
    <${Field} form=${form} name="title" label=${t('title')} />
    <div class="row"><${Submit} form=${form} icon="send">${t('send')}<//><${AsCode} request=${request(bodyOf(form.values))} /></div>
  <//>`;
}

const kindOf = (type) => (/^image\/(jpeg|png|gif|webp)$/.test(type) ? 'image' : type.startsWith('video/') ? 'video' : type === 'audio/ogg' ? 'voice' : 'file');

function File({ say, close, request }) {
  const [picked, setPicked] = useState(null);
  const [problem, setProblem] = useState('');
  const id = useId();
  const bodyOf = ({ kind, url, caption }, data) => ({
    type: picked ? kindOf(picked.type) : kind,
    file: picked ? { data: data ?? '…', filename: picked.name } : { url },
    ...(caption && { caption }),
  });
  const form = useForm({ kind: 'image', url: '', caption: '' }, async (values) => {
    await say(bodyOf(values, picked && await base64(picked)));
    close();
  });
  const pick = (event) => {
    const [file] = event.target.files;
    setProblem(file?.size > largest ? t('tooLarge') : '');
    setPicked(file && file.size <= largest ? file : null);
  };
  return html`<${Form} form=${form}>
    <div class="field"><label class="label" for=${id}>${t('fromHere')}</label><input type="file" id=${id} onChange=${pick} />
      <span class=${problem ? 'wrong' : 'hint'}>${problem || t('fromHereHint')}</span></div>
    ${!picked && html`<${Field} form=${form} name="url" type="url" path="file.url" label=${t('fromAddress')} />
      <${Field} form=${form} name="kind" type="select" label=${t('as')} options=${['image', 'voice', 'video', 'file'].map((kind) => [kind, t(`kind.${kind}`)])} />`}
    <${Field} form=${form} name="caption" label=${t('caption')} />
    <div class="row"><${Submit} form=${form} icon="send" disabled=${!picked && !form.values.url}>${t('send')}<//><${AsCode} request=${request(bodyOf(form.values))} /></div>
  <//>`;
}
