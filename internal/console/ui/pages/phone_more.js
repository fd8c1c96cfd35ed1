// What a phone can send besides text: a place, a file. And the text as code.
import { html, useState, useId, useEffect, useRef } from '../view.js';
import { texts } from '../i18n.js';
import { Dialog } from '../parts/dialog.js';
import { AsCode } from '../parts/as_code.js';
import { CodeTabs } from '../parts/snippet.js';
import { Tabs, TabPanel } from '../parts/tabs.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { useKeys } from '../keys.js';
import { Button, useWork } from '../parts/button.js';
import { say as tell, toast } from '../parts/toast.js';

const core = texts('core');
const t = texts('phone');

export function More({ channel, device, text, say, close }) {
  const [tab, setTab] = useState('location');
  const props = { say, close, request: (body) =>
    ({ method: 'POST', path: `/api/sandbox/phones/${device.number}/send`, headers: { 'X-Channel': channel }, body }) };
  return html`<${Dialog} open title=${t('sendOther')} onClose=${close}>
    <${Tabs} small label=${t('sendOther')} current=${tab} onPick=${setTab}
      tabs=${['location', 'file', 'code'].map((id) => ({ id, label: id === 'code' ? core('asCode') : t(`kind.${id}`) }))} />
    <${TabPanel} label=${t('sendOther')}>${tab === 'location' ? html`<${Place} ...${props} />` : tab === 'file'
      ? html`<${File} ...${props} />`
      : html`<${CodeTabs} request=${props.request({ type: 'text', message: text || t('hello') })} />`}<//>
  <//>`;
}

function Place({ say, close, request }) {
  const toBody = ({ title, ...at }) => ({ type: 'location', ...at, ...(title && { title }) });
  const form = useForm({ latitude: '-6.2088', longitude: '106.8456', title: 'Jakarta' }, async (values) =>
    { await say(toBody(values)); close(); });
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="latitude" label=${t('latitude')} inputmode="decimal" required />
    <${Field} form=${form} name="longitude" label=${t('longitude')} inputmode="decimal" required />
    <${Field} form=${form} name="title" label=${t('title')} />
    <div class="row"><${Submit} form=${form} icon="send">${t('send')}<//><${AsCode} request=${request(toBody(form.values))} /></div>
  <//>`;
}

const toKind = (type) => (/^image\/(jpeg|png|gif|webp)$/.test(type) ? 'image' : type.startsWith('video/') ? 'video' : type === 'audio/ogg'
  ? 'voice' : 'file');

function File({ say, close, request }) {
  const [picked, setPicked] = useState(null);
  const [problem, setProblem] = useState('');
  const id = useId();
  const toBody = ({ kind, url, caption }, data) => ({
    type: picked ? toKind(picked.type) : kind,
    file: picked ? { data: data ?? '…', filename: picked.name } : { url },
    ...(caption && { caption }),
  });
  const form = useForm({ kind: 'image', url: '', caption: '' }, async (values) => {
    await say(toBody(values, picked && await base64(picked)));
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
      <${Field} form=${form} name="kind" type="select" label=${t('as')}
        options=${['image', 'voice', 'video', 'file'].map((kind) => [kind, t(`kind.${kind}`)])} />`}
    <${Field} form=${form} name="caption" label=${t('caption')} />
    <div class="row"><${Submit} form=${form} icon="send" disabled=${!picked && !form.values.url}>${t('send')}<//>
      <${AsCode} request=${request(toBody(form.values))} /></div>
  <//>`;
}

// A voice message, spoken into the microphone of this computer.

const longest = 60; // seconds
const every = 250; // milliseconds; the recorder's pieces are also its clock
// Phones send the first. The server converts the others to it, with ffmpeg.
const kinds = ['audio/ogg;codecs=opus', 'audio/webm;codecs=opus', 'audio/mp4'];

const why = { NotAllowedError: 'refused', SecurityError: 'refused', NotFoundError: 'none' };

async function microphone() {
  if (!navigator.mediaDevices) throw new Error(t('mic.insecure')); // browsers hide it from pages that others can change on their way
  if (!window.MediaRecorder) throw new Error(t('mic.unable'));
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    throw new Error(t(`mic.${why[error.name] || 'busy'}`));
  }
}

/** Records from when the component is there: {state: asking | recording | stopped, seconds, ready, end}. */
function useRecording(onFail) {
  const [now, set] = useState({ state: 'asking', seconds: 0 });
  const end = useRef();
  useEffect(() => {
    let gone = false;
    let stream;
    const release = () => { stream?.getTracks().forEach((track) => track.stop()); };
    const begin = async () => {
      stream = await microphone();
      if (gone) { release(); return; }
      const mimeType = kinds.find((kind) => MediaRecorder.isTypeSupported(kind));
      const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: 32_000 });
      const pieces = [];
      const began = performance.now();
      recorder.ondataavailable = ({ data }) => {
        pieces.push(data);
        if (recorder.state !== 'recording') return;
        const size = pieces.reduce((sum, piece) => sum + piece.size, 0);
        const seconds = Math.min((performance.now() - began) / 1000, longest);
        set({ state: 'recording', seconds, ready: size > 0 });
        if (seconds === longest || size > largest * 0.9) recorder.stop();
      };
      // A microphone that is pulled out ends it too.
      const ended = new Promise((done) => {
        recorder.onstop = () => {
          release();
          if (!gone) set((was) => ({ ...was, state: 'stopped' }));
          done(new Blob(pieces, { type: recorder.mimeType }));
        };
      });
      end.current = () => { if (recorder.state !== 'inactive') recorder.stop(); return ended; };
      recorder.start(every);
      set({ state: 'recording', seconds: 0 });
    };
    begin().catch((error) => { release(); if (!gone) onFail(error); });
    return () => { gone = true; release(); };
  }, []);
  return { ...now, end };
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

/** In the place of the composer's row; say sends, close brings the row back. */
export function Recorder({ say, close }) {
  const box = useRef();
  const { state, seconds, ready, end } = useRecording((error) => { toast(error.message, { kind: 'bad' }); close(); });
  const [sending, send] = useWork(async () => {
    const sound = await end.current();
    await say({ type: 'voice', file: { data: await base64(sound), filename: `voice.${sound.type.match(/ogg|webm|mp4/)?.[0] || 'ogg'}` } });
    close();
  });
  useEffect(() => box.current.focus(), []);
  useEffect(() => { if (!sending) tell(t(`record.${state}`)); }, [state]);
  useKeys([['Escape', core('cancel'), close]]);
  // The Enter that pressed the microphone may be held down still.
  const keys = (event) => {
    if (event.key !== 'Enter' || event.repeat || event.target !== box.current || !ready || sending) return;
    event.preventDefault();
    send();
  };
  return html`<div class="recording" role="group" aria-label=${t('record')} tabindex="-1" ref=${box} onKeyDown=${keys}>
    <i data-state=${state} aria-hidden="true" /><b>${t(`record.${state}`)}</b>
    ${state !== 'asking' && html`<span class="mono-num"><span role="timer">${clock(seconds)}</span> <span class="muted">/ ${clock(longest)}
      </span></span>`}
    <span class="row nowrap"><${Button} small onClick=${close}>${core('cancel')}<//>
      <${Button} small kind="primary" icon="send" disabled=${!ready} busy=${sending} onClick=${send}>${t('send')}<//></span></div>`;
}

// Files that a request to the sandbox holds itself.

export const largest = 700_000; // bytes; in base64 it must fit into a request of 1 MiB

export const base64 = (file) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(',')[1]);
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(file);
});
