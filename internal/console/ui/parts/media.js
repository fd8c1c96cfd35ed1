// What a message carries besides text: pictures, sounds, films, files, places and contact cards. Files are fetched with the
// session and shown from memory; nothing is loaded from anywhere else. Each takes the message m and file(m), which fetches.
import { html, useState, useEffect, useRef } from '../view.js';
import { bytes, duration, texts } from '../i18n.js';
import { masked } from '../state.js';
import { Icon } from './icon.js';
import { Button, IconButton, Copy } from './button.js';
import { mask } from './who.js';

const t = texts('phone');

const toFile = ({ m, file }) => file(m);

/** The address of a message's file in memory, from when wanted is true until the component goes. */
function useFile(where, wanted) {
  const [state, set] = useState({});
  useEffect(() => {
    if (!wanted) return undefined;
    let url = '';
    let there = true;
    toFile(where).then((blob) => {
      if (there) set({ url: url = URL.createObjectURL(blob) });
    }, () => there && set({ failed: true }));
    return () => { there = false; if (url) URL.revokeObjectURL(url); };
  }, [wanted]);
  return state;
}

const Gone = () => html`<span class="muted">${t('fileGone')}</span>`;

function Picture(where) {
  const box = useRef();
  const [near, setNear] = useState(false);
  const [broken, setBroken] = useState(false); // a file that is no picture
  // A long chat fetches only what comes into view.
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => { if (entry.isIntersecting) { setNear(true); watch.disconnect(); } },
      { rootMargin: '300px' });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const { url, failed } = useFile(where, near);
  const { width, height, filename } = where.m.media;
  return html`<div class="picture" ref=${box} style=${{ aspectRatio: width && height ? `${width} / ${height}` : '4 / 3' }}>
    ${failed || broken ? html`<${Gone} />`
      : url && html`<img src=${url} alt=${mask(where.m.body || filename || t(`kind.${where.m.type}`))}
        onError=${() => setBroken(true)} />`}</div>`;
}

/** A sound with its waveform; what was heard is darker. */
function Voice(where) {
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

function Film(where) {
  const [wanted, setWanted] = useState(false);
  const { url, failed } = useFile(where, wanted);
  const { seconds, bytes: size } = where.m.media;
  if (url) return html`<video class="picture" src=${url} controls autoplay aria-label=${t('kind.video')} />`;
  return html`<div class="picture film">${failed ? html`<${Gone} />` : html`
    <${Button} icon="play" busy=${wanted} onClick=${() => setWanted(true)}>${t('play')}<//>
    <span class="muted">${[seconds && duration(seconds * 1000), bytes(size)].filter(Boolean).join(' · ')}</span>`}</div>`;
}

function Document(where) {
  const { filename, bytes: size } = where.m.media;
  const download = async () => {
    const url = URL.createObjectURL(await toFile(where));
    Object.assign(document.createElement('a'), { href: url, download: filename || 'file' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return html`<div class="document"><${Icon} name="file" size=${24} /><span class="grow"><bdi class="clip">
    ${mask(filename || t('kind.file'))}</bdi>
    <span class="muted">${bytes(size)}</span></span><${Button} small icon="download" aria-label=${t('download', { name: filename })}
      onClick=${download} /></div>`;
}

// The land of the earth, very roughly: longitude + 180 and 90 - latitude of the corners of each piece.
const land = `M12 24 24 19 52 20 85 22 98 27 86 31 98 38 103 28 115 31 124 38 114 45 104 55 99 65 86 61 83 70 93 71 102 82 86 74 68 61 56
  50 56 42 45 32 30 30 16 35z M102 82 118 80 145 96 132 116 115 132 111 142 106 140 110 108 99 95z M174 54 190 53 212 59 223
  78 231 78 220 94 213 117 207 124 198 124 192 107 189 86 172 86 163 76z M171 53 171 47 178 46 175 42 188 36 204 35 202 25 185
  32 195 21 206 19 224 26 280 13 320 18 360 21 343 30 336 39 335 31 322 31 315 36 310 48 302 51 301 59 288 70 285 81 280 76
  277 73 271 68 257 82 252 70 237 64 232 74 223 77 215 62 216 54 207 53 199 48 192 48 183 47z M125 8 160 8 158 20 136 30 112
  13z M294 112 310 102 321 101 333 117 330 127 324 129 309 122 295 124z M275 85 284 92 285 96z M289 89 297 83 299 89 295 94z
  M285 97 294 98z M311 91 321 93 330 100 318 98z M310 58 320 54 321 47 325 46 319 53z M175 40 181 39 178 33z M353 125 358 128
  350 136z M224 114 229 103 230 106z`;

/** A place: the earth drawn from memory, a pin and the coordinates. No tiles are fetched. */
function Place({ m }) {
  const { latitude, longitude, title, address } = m.location;
  const [x, y] = [Number(longitude) + 180, 90 - Number(latitude)];
  return html`<figure class="place">
    <svg viewBox="0 0 360 150" role="img" aria-label=${t('mapOf', { place: `${latitude}, ${longitude}` })}>
      <path class="grid" d="M60 0v150M120 0v150M180 0v150M240 0v150M300 0v150M0 30h360M0 60h360M0 90h360M0 120h360" />
      <path class="land" d=${land} />
      <path class="pin" d="M${x} ${y}l-7-14a8 8 0 1 1 14 0z" /><circle class="hole" cx=${x} cy=${y - 18} r="3" />
    </svg>
    <figcaption>${[title, address].filter(Boolean).map((line) => html`<bdi>${mask(line)}</bdi> `)}<span class="muted mono-num">
      ${mask(`${latitude}, ${longitude}`)}</span>
      ${!masked.value && html` <a href=${`geo:${latitude},${longitude}?q=${latitude},${longitude}`}>${t('openMap')}</a>`}</figcaption>
  </figure>`;
}

// The numbers of a vCard, as their sender wrote them.
const numbersIn = (vcard) => [...vcard.matchAll(/^(?:item\d+\.)?TEL[^:\n]*:(.+)$/gim)].map(([, text]) => text.trim()).slice(0, 5);

function Cards({ m }) {
  return html`<ul class="cards" aria-label=${t('kind.contact')}>
    ${m.contacts.slice(0, 20).map((card, i) => html`<li key=${i}><${Icon} name="user" size=${20} />
    <span class="grow"><bdi class="clip">${mask(card.name || t('kind.contact'))}</bdi>
      ${numbersIn(card.vcard).map((one) => html`<bdi class="muted clip">${mask(one)}</bdi>`)}</span>
    <${Copy} text=${card.vcard} what="vCard" /></li>`)}</ul>`;
}

/** What draws each kind. */
export const carried = { image: Picture, sticker: Picture, voice: Voice, video: Film, file: Document, location: Place, contact: Cards };
