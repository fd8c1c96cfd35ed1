// A voice message, spoken into the microphone of this computer.
import { html, useState, useEffect, useRef } from '../view.js';
import { texts } from '../i18n.js';
import { useKeys } from '../keys.js';
import { Button, useWork } from '../parts/button.js';
import { say as tell, toast } from '../parts/toast.js';
import { base64, largest } from './phone-file.js';

const core = texts('core');
const t = texts('phone');

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
    ${state !== 'asking' && html`<span class="mono-num"><span role="timer">${clock(seconds)}</span> <span class="muted">/ ${clock(longest)}</span></span>`}
    <span class="row nowrap"><${Button} small onClick=${close}>${core('cancel')}<//>
      <${Button} small kind="primary" icon="send" disabled=${!ready} busy=${sending} onClick=${send}>${t('send')}<//></span></div>`;
}
