// Pairing: always in exactly one state, with a sentence, the time left and what to do.
import { html, useState, useEffect, useId } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { useSecond } from '../state.js';
import { texts, duration, textsIn, lang, languages, clock } from '../i18n.js';
import { Card, Loading, Failed, Note } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Reason } from '../parts/channel_status.js';
import { Remedy } from '../parts/remedy.js';
import { Ring, Left } from '../parts/time.js';
import { toast } from '../parts/toast.js';
import { Who, number, phone } from '../parts/who.js';

const t = texts('pairing');

const slowAfter = 5; // seconds until it is said that this takes longer than usual
const stuckAfter = 15; // and until the checks run

const states = { starting: 'starting', qr: 'qr', code: 'code', wrong_code: 'wrongCode', passkey: 'passkey',
  confirm: 'confirm', timeout: 'timeout',
  failed: 'refused' };

/** The one state of a channel and its latest step of pairing. */
function toState({ simulated, status, number: linked }, pairing) {
  if (simulated && status !== 'SCAN_QR_CODE') return status === 'LOGGED_OUT' ? 'sandboxOut' : 'sandbox';
  if (status === 'WORKING') return 'working';
  if (status === 'STOPPED') return 'stopped';
  const step = pairing?.step;
  const underWay = status === 'STARTING' || status === 'RECONNECTING';
  if (step === 'paired' && underWay) return linked ? 'syncing' : 'scanned';
  if (['qr', 'code', 'wrong_code'].includes(step) && !pairing.code) return 'starting'; // it has just expired; the next one is on its way
  if (step === 'starting' && pairing.reason) return 'lost';
  if (states[step]) return states[step];
  return underWay ? 'connecting' : status === 'LOGGED_OUT' ? 'loggedOut' : status === 'FAILED' ? 'refused' : 'ready';
}

export function PairPanel({ channel, goLive, changed }) {
  const { code } = channel;
  const load = useLoad(async () => (await api.get(`/manage/channels/${code}/pairing`)).data, [channel.status]);
  useEvents(['channel.'], (events) => { if (events.some((event) => event.channel === code)) load.reload(); });
  const [asked, setAsked] = useState({}); // what the last codes were asked with, to ask for new ones
  const pairing = load.data;
  if (load.error && !load.data) return html`<${Failed} load=${load} />`;
  if (pairing === undefined) return html`<${Loading} />`;

  const begin = async (body) => {
    setAsked(body);
    await api.post(`/manage/channels/${code}/pair`, body);
    await load.reload();
  };
  const careful = async () => {
    await api.patch(`/manage/channels/${code}`, { settings: { ...channel.settings, careful: 'new_number' } });
    await changed();
  };
  const state = toState(channel, pairing);
  const who = html`<${Who} number=${channel.number} />`;
  const retry = html`<${Button} kind="primary" icon="refresh" onClick=${() => begin(asked)}>
    ${t(state === 'refused' ? 'again' : 'newCodes')}<//>`;
  const again = html`<${Button} icon="refresh" onClick=${() => begin(asked)}>${t('newCodes')}<//>`;
  const typed = !channel.simulated && html`<${ByCode} channel=${channel} begin=${begin} last=${asked.number} />`;
  const both = !channel.simulated && html`<${Ways} channel=${channel} begin=${begin} last=${asked.number} />`;
  const toType = () => ({ body: html`<p class="row"><output class="pair-typed" data-t="pairing-code">${pairing.code}</output>
    <${Copy} text=${pairing.code} what=${t('codeWhat')} /></p><${Countdown} of=${pairing} /><${Steps} last="3code" />`,
    ways: html`<${ByQR} begin=${begin} />` });
  const shown = {
    sandbox: () => ({ hint: t('sandboxHint'), action: html`<${Button} kind="primary" icon="bolt" onClick=${goLive}>${t('goLive')}<//>` }),
    sandboxOut: () => ({ hint: t('sandboxOutHint'), action: html`<${Button} kind="primary" icon="link" onClick=${() => begin({})}>
      ${t('pairAgain')}<//>` }),
    stopped: () => ({ hint: t('stoppedHint'),
      action: html`<${Button} kind="primary" icon="play" onClick=${() => api.post(`/manage/channels/${code}/start`)}>${t('start')}<//>` }),
    ready: () => ({ hint: t('readyHint'), ways: both }),
    loggedOut: () => ({ hint: html`<${Reason} text=${channel.reason} />`, ways: both }),
    connecting: () => ({ hint: html`<${Reason} text=${channel.reason} /> ${t('connectingHint')}` }),
    lost: () => ({ hint: t('lostHint') }),
    starting: () => ({ body: html`<${Starting} since=${pairing.at} />` }),
    qr: () => ({ body: html`<div class="pair-code"><${QR} rows=${pairing.qr} label=${t('qrImage')} /><div class="stack">
      <${Countdown} of=${pairing} /><${Steps} last="3" /></div></div>`, ways: typed }),
    code: toType,
    wrongCode: () => ({ hint: t('wrongCodeHint'), ...toType() }),
    scanned: () => ({ hint: t('syncingHint') }),
    syncing: () => ({ hint: t('syncingHint') }),
    passkey: () => (pairing.passkey ? { hint: t('passkeyWhy'),
      body: html`<${Passkey} code=${code} pairing=${pairing} done=${load.reload} />`, action: again, ways: typed }
      : { hint: t('passkeyOver'), action: retry, ways: typed }),
    confirm: () => ({ hint: t('confirmHint'), body: html`<p class="row"><output class="pair-typed">${pairing.code}</output></p>`,
      action: html`<${Button} kind="primary" icon="good" onClick=${async () => {
        await api.post(`/manage/channels/${code}/pairing/passkey`, { confirmed: true }); await load.reload(); }}>${t('codesEqual')}<//>` }),
    timeout: () => ({ hint: t('timeoutHint'), action: retry, ways: both }),
    refused: () => ({ hint: html`<${Reason} text=${pairing?.reason || channel.reason} />`, action: retry, ways: both }),
    working: () => ({ hint: t('workingHint'), body: html`<${TestMessage} channel=${channel} />` }),
  }[state]();
  const icons = { working: 'good', refused: 'bad', loggedOut: 'bad', sandboxOut: 'bad', passkey: 'warn', confirm: 'warn',
    wrongCode: 'warn', lost: 'warn',
    timeout: 'clock', qr: 'qr', code: 'otp' };
  return html`<div class="grid2 pair" data-state=${state}>
    <${Card}>
      <div role="status" class="pair-state"><h2><${Icon} name=${icons[state] || 'phone'} size=${20} /><span>${t(state, { who })}
        </span></h2></div>
      ${shown.hint && html`<p class="muted">${shown.hint}</p>`}
      ${shown.body}
      ${shown.action && html`<div class="row">${shown.action}</div>`}
      ${shown.ways}
      ${shown.ways && !channel.settings.careful && html`<section class="pair-way"><h3>${t('newNumber')}</h3><p class="hint">
        ${t('newNumberHint')}</p><div class="row"><${Button} onClick=${careful}>${t('newNumberOn')}<//></div></section>`}
    <//>
    ${!channel.simulated && !['sandbox', 'sandboxOut', 'stopped', 'working', 'connecting', 'scanned', 'syncing'].includes(state) &&
      html`<${OwnerLink} channel=${channel} />`}
  </div>`;
}

// A phone cannot scan itself: on a small screen the code comes first.
function useSmall() {
  const [small, set] = useState(() => matchMedia('(max-width: 719px)').matches);
  useEffect(() => {
    const media = matchMedia('(max-width: 719px)');
    const follow = () => set(media.matches);
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, []);
  return small;
}

function Ways(props) {
  const list = [html`<${ByQR} key="qr" ...${props} />`, html`<${ByCode} key="code" ...${props} />`];
  return html`<div class="pair-ways">${useSmall() ? list.reverse() : list}</div>`;
}

const ByQR = ({ begin }) => html`<section class="pair-way"><h3>${t('byQR')}</h3><p class="hint">${t('byQRHint')}</p>
  <div class="row"><${Button} icon="qr" onClick=${() => begin({})}>${t('showQR')}<//></div></section>`;

function ByCode({ channel, begin, last }) {
  const form = useForm({ number: last || (channel.number && phone(channel.number)) }, begin);
  return html`<section class="pair-way"><h3>${t('byCode')}</h3><p class="hint">${t('byCodeHint')}</p>
    <${Form} form=${form}>
      <${Field} form=${form} name="number" label=${t('number')} hint=${t('numberHint')} type="tel" autocomplete="tel"
        placeholder="+62 812-3456-7890" />
      <div class="row"><${Submit} form=${form} kind="">${t('getCode')}<//>
        <${AsCode} request=${{ method: 'POST', path: `/api/manage/channels/${channel.code}/pair`, body: form.values }} /></div>
    <//></section>`;
}

/** What to run on web.whatsapp.com, and a field for what it prints. */
function Passkey({ code, pairing: { at, passkey: { request, expires_at: until } }, done }) {
  const form = useForm({ assertion: '' }, async ({ assertion }) => {
    let response;
    try { response = JSON.parse(assertion); } catch { throw { errors: { assertion: [t('passkeyBad')] } }; }
    await api.post(`/manage/channels/${code}/pairing/passkey`, { assertion: response });
    return done();
  });
  const line = `navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(request)})})` +
    '.then((c) => console.log(JSON.stringify(c)))';
  return html`<${Countdown} of=${{ at, expires_at: until }} />
    <ol class="pair-steps">${[1, 2, 3].map((n) => html`<li key=${n}>${t(`passkeyDo.${n}`)}</li>`)}</ol>
    <div class="pair-line"><${Code} text=${line} wrap what=${t('passkeyLine')} /></div>
    <${Form} form=${form}><${Field} form=${form} name="assertion" type="textarea" label=${t('passkeyField')} class="mono" autocomplete="off"
      spellcheck=${false} required />
      <div class="row"><${Submit} form=${form}>${t('passkeySend')}<//></div><//>`;
}

function Countdown({ of: { step, at, expires_at: until, n, of } }) {
  const left = duration(Math.max(0, Math.ceil((Date.parse(until) - useSecond()) / 1000)) * 1000);
  return html`<p class="row pair-left"><${Ring} until=${until} total=${(Date.parse(until) - Date.parse(at)) / 1000} /><span>
    ${step === 'qr' ? t('qrLeft', { n, of, left }) : t('codeLeft', { left })}</span></p>`;
}

const Steps = ({ last }) => html`<ol class="pair-steps">
  ${[['settings', '1'], ['link', '2'], [last === '3' ? 'qr' : 'otp', last]].map(([icon, key]) => html`
  <li key=${key}><i aria-hidden="true"><${Icon} name=${icon} /></i><span>${t(`step.${key}`)}</span></li>`)}</ol>`;

function Starting({ since }) {
  const waited = (useSecond() - Date.parse(since)) / 1000;
  if (waited < slowAfter) return null;
  return waited < stuckAfter ? html`<p class="muted">${t('slow')}</p>` : html`<${Finding} />`;
}

// The findings of the checks on this machine.
function Finding() {
  const load = useLoad(() => api.get('/manage/doctor'));
  if (!load.data) return html`<p class="muted">${t('slow')}</p>`;
  const found = load.data.data.findings.filter((finding) => finding.level !== 'ok' &&
    /^(whatsapp|clock|data|server|nodes)/.test(finding.name));
  return html`<${Note} kind="warn" title=${t('stuck')}>
    ${found.length ? html`<ul>${found.map(({ name, sentence, remedy }) => html`<li key=${name + sentence}><bdi>${sentence}
      </bdi> ${remedy && html`<${Remedy} text=${remedy} />`}</li>`)}</ul>` : t('noFinding')}<//>`;
}

function TestMessage({ channel }) {
  const form = useForm({ contact_id: phone(channel.settings.allow_only?.[0] || channel.number) }, async (values) => {
    await api.post('/send-message/text', wanted(values), { channel: channel.code });
    toast(t('tested'), { kind: 'good' });
  });
  const wanted = (values) => ({ contact_id: `${number(values.contact_id)}@c.us`, message: t('testText') });
  return html`<${Form} form=${form}><${Field} form=${form} name="contact_id" label=${t('testTo')} type="tel" autocomplete="off" />
    <div class="row"><${Submit} form=${form}>${t('sendTest')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/send-message/text', headers: { 'X-Channel': channel.code },
        body: wanted(form.values) }} /></div><//>`;
}

// A pairing link for the owner of the phone: to copy, to scan, or to send with a text in their language.

export function OwnerLink({ channel }) {
  const [link, setLink] = useState(null);
  const path = `/manage/channels/${channel.code}/pair-link`;
  const make = async () => setLink((await api.post(path)).data);
  return html`<${Card} title=${t('owner')}>
    <p class="muted">${t('ownerText')}</p>
    ${link && html`<${Link} link=${link} name=${channel.name} />`}
    <div class="row"><${Button} icon="link" onClick=${make}>${t(link ? 'anotherLink' : 'makeLink')}<//>
      <${AsCode} request=${{ method: 'POST', path: `/api${path}` }} /></div>
  <//>`;
}

function Link({ link: { url, expires_at: until, qr }, name }) {
  const [language, setLanguage] = useState(lang.value);
  const id = useId();
  const values = { name, url, time: clock(until).slice(0, 5) };
  const mail = useLoad(() => textsIn(language, 'pairmail'), [language]).data;
  return html`<div class="stack">
    <${Code} wrap text=${url} what=${t('link')} />
    <p class="muted">${t('linkLeft', { left: html`<${Left} until=${until} />` })}</p>
    ${qr?.length > 0 && html`<${QR} rows=${qr} label=${t('linkQR')} size=${200} />`}
    <div class="row nowrap"><label for=${id} class="label">${t('mailIn')}</label>
      <select id=${id} value=${language} onChange=${(event) => setLanguage(event.target.value)}>
        ${Object.entries(languages).map(([code, label]) => html`
        <option key=${code} value=${code} selected=${code === language}>${label}</option>`)}</select></div>
    ${mail && html`<${Code} wrap text=${mail('message', values)} what=${t('mail')} />
      <p><a href=${`mailto:?subject=${encodeURIComponent(mail('subject', values))}&body=${encodeURIComponent(mail('message', values))}`}>
        ${t('openMail')}</a></p>`}
  </div>`;
}

// A QR code from its rows of '0' and '1'. Black on white in both themes: cameras need that.

const quiet = 4; // modules of white around it; with fewer, some cameras do not find it

export function QR({ rows, label, size = 288 }) {
  const side = rows.length + 2 * quiet;
  let path = '';
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) path += `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`;
  });
  return html`<svg class="qr" width=${size} height=${size} viewBox="0 0 ${side} ${side}" role="img" aria-label=${label}
    shape-rendering="crispEdges">
    <rect width=${side} height=${side} fill="#fff" /><path d=${path} fill="#000" />
  </svg>`;
}
