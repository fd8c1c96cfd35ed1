// What of a message is played: voice messages and films.
import { html, useState, useEffect, useRef } from '../view.js';
import { bytes, duration, texts } from '../i18n.js';
import { Button, IconButton } from './button.js';
import { Gone, useFile } from './media_file.js';

const t = texts('phone');

/** A sound with its waveform; what was heard is darker. */
export function Voice(where) {
  const { seconds, waveform } = where.m.media;
  const [wanted, setWanted] = useState(false);
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const { url, failed } = useFile(where, wanted);
  const sound = useRef();
  useEffect(() => {
    if (!url) return undefined;
    const audio = sound.current = new Audio(url);
    audio.ontimeupdate = () => setAt(audio.currentTime / (audio.duration || 1));
    audio.onplay = () => setPlaying(true);
    audio.onpause = audio.onended = () => setPlaying(false);
    audio.play().catch(() => {});
    return () => audio.pause();
  }, [url]);
  const toggle = () => {
    if (!sound.current) setWanted(true);
    else if (playing) sound.current.pause();
    else sound.current.play().catch(() => {});
  };
  const levels = waveform?.length ? waveform : Array(64).fill(8);
  const bars = (from, to) => levels.slice(from, to)
    .map((level, i) => `M${(from + i) * 3 + 1} ${16 - level * 0.14 - 1}v${level * 0.28 + 2}`).join('');
  const heard = Math.round(at * levels.length);
  return html`<div class="voice">
    <${IconButton} icon=${playing ? 'pause' : 'play'} label=${t(playing ? 'pause' : 'play')} onClick=${toggle} />
    ${failed ? html`<${Gone} />` : html`<svg viewBox="0 0 192 32" height="32" role="img" aria-label=${t('kind.voice')}>
      <path class="unheard" d=${bars(heard, levels.length)} /><path d=${bars(0, heard)} /></svg>`}
    <span class="muted mono-num">${seconds > 0 && duration(seconds * 1000)}</span></div>`;
}

export function Film(where) {
  const [wanted, setWanted] = useState(false);
  const { url, failed } = useFile(where, wanted);
  const { seconds, bytes: size } = where.m.media;
  if (url) return html`<video class="picture" src=${url} controls autoplay aria-label=${t('kind.video')} />`;
  return html`<div class="picture film">${failed ? html`<${Gone} />` : html`
    <${Button} icon="play" busy=${wanted} onClick=${() => setWanted(true)}>${t('play')}<//>
    <span class="muted">${[seconds && duration(seconds * 1000), bytes(size)].filter(Boolean).join(' · ')}</span>`}</div>`;
}
