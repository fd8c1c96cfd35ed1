// A login page such as a customer has: it takes the code, or waits for the callback of the link.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { api } from '../api.js';
import { texts } from '../i18n.js';
import { Card, Note, Empty } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Left, Time } from '../parts/time.js';
import { phone, mask } from '../parts/who.js';
import { AsCode } from '../parts/code.js';
import { Badge } from '../parts/status.js';

const t = texts('otp');

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Tries a code and tells the story of it. */
export async function tryCode({ channel, story }, contact, code) {
  const { data, message } = await api.post('/otp/code/validate', { contact_id: contact, code }, { channel });
  if (data.status === 'LOCKED' || data.status === 'EXPIRED') story.end(data.status.toLowerCase());
  return { ...data, message };
}

export function LoginPage({ channel, kind, story, real, codes, openPhone, tap, request, contact }) {
  const { run } = story;
  const mine = run?.kind === kind ? run : null;
  return html`<${Card} title=${t('login')} class="otp-login" actions=${kind === 'code' && html`<${AsCode} small request=${{ method: 'POST', path: '/api/otp/code/validate', headers: { 'X-Channel': channel }, body: { contact_id: contact, code: '123456' } }} />`}>
    ${!mine ? html`<${Empty} title=${t(kind === 'code' ? 'nobody' : 'nobodyLink')}>${!real && contact.length > 5 && html`<${Demo} request=${request} contact=${contact} />`}<//>`
      : mine.ended === 'approved' ? html`<${Approved} run=${mine} called=${story.steps.findLast((step) => step.id === 'callback')} />`
        : mine.ended === 'not_sent' ? html`<${Note} kind="bad" title=${t('notSent')}><bdi lang="en">${mine.why}</bdi> ${t('notSentDo')}<//>`
        : kind === 'code' ? html`<${CodeEntry} channel=${channel} story=${story} run=${mine} codes=${codes} />`
          : html`<${LinkEntry} run=${mine} real=${real} openPhone=${openPhone} tap=${tap} />`}
  <//>`;
}

// With a callback the page knows only what its server received.
function Approved({ run, called }) {
  if (run.callback && !called) return html`<p role="status">${t('waiting')}</p>`;
  return called?.tone === 'bad' ? html`<${Note} kind="bad" title=${t('callbackFailed')}>${called.reason}<//>`
    : html`<${Note} kind="good" title=${t('welcome')}>${mask(phone(run.contact))}<//>`;
}

const slowly = { wanted: false }; // whether the demo is to go on by itself

/** Does all steps, slowly enough to be followed. */
function Demo({ request, contact }) {
  const run = async () => { slowly.wanted = true; await request({ contact_id: contact, name: 'Demo', expires: 300 }); };
  return html`<${Button} need="operator" icon="play" onClick=${run}>${t('demo')}<//>`;
}

function Expiry({ run }) {
  const life = Date.parse(run.answer.expired_at) - Date.parse(run.answer.timestamp);
  const [until] = useState(() => new Date(Date.now() + life).toISOString());
  return html`<p class="muted">${run.ended === 'expired' ? t('expired') : html`${t('left')} <${Left} until=${until} />`}</p>`;
}

function CodeEntry({ channel, story, run, codes }) {
  const [text, setText] = useState('');
  const [said, setSaid] = useState(null);
  const id = useId();
  const there = useRef(true);
  useEffect(() => () => { there.current = false; }, []);
  const check = async (code) => setSaid(await tryCode({ channel, story }, run.contact, code));
  const submit = (event) => { event.preventDefault(); if (text.trim()) check(text.trim()).catch((error) => setSaid({ message: error.message })); };
  // The demo types what the phone shows, a key at a time.
  useEffect(() => {
    if (!slowly.wanted || !codes[0]) return;
    slowly.wanted = false;
    (async () => {
      await pause(900);
      for (let i = 1; i <= codes[0].length && there.current; i++) { setText(codes[0].slice(0, i)); await pause(150); }
      await pause(400);
      if (there.current) check(codes[0]);
    })();
  }, [codes[0]]);
  return html`<form class="form" onSubmit=${submit}>
    <div class="field"><label class="label" for=${id}>${t('enterCode')}</label>
      <input id=${id} class="code-input" autocomplete="one-time-code" maxlength="64" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <${Button} kind="primary" type="submit">${t('logIn')}<//>
    <${Expiry} run=${run} />
    <div role="status">${said && html`<${Note} kind="warn" title=${said.status}>${said.message}${said.attempts_left != null && ` ${t('attempts', { n: said.attempts_left })}`}<//>`}</div>
  </form>`;
}

function LinkEntry({ run, real, openPhone, tap }) {
  const there = useRef(true);
  useEffect(() => {
    if (slowly.wanted) {
      slowly.wanted = false;
      pause(900).then(() => there.current && openPhone()).then(() => pause(1200)).then(() => there.current && tap());
    }
    return () => { there.current = false; };
  }, []);
  return html`
    <p>${t('linkHow')}</p>
    ${real ? html`<${Copy} text=${run.answer.link} what=${t('kind.link')}>${t('copyLink')}<//>` : html`<${Button} kind="primary" icon="messages" onClick=${openPhone}>${t('openChat')}<//>
      <p class="muted"><a href=${run.answer.link} target="_blank" rel="noreferrer noopener">${t('openLink')}</a></p>`}
    <p role="status">${t(run.callback ? 'waiting' : 'waitingMessage')}</p>
    <${Expiry} run=${run} />`;
}

// What goes wrong with one-time passwords, on demand, and where the rules for it stand.

const docs = (operation) => `/docs#/One-time%20passwords/${operation}`;
const tones = { APPROVED: 'good', SENT: '' };

export function Trouble({ channel, kind, story, real, codes, phones, digits, request }) {
  const { run, outcomes, note } = story;
  const mine = run?.kind === kind ? run : null;
  const open = mine && !mine.ended;
  const on = { channel };

  // A code that is surely wrong has the form of the right one.
  const wrong = (codes[0] || '000000').replace(/./, (c) => (c === '7' ? '8' : '7'));
  const tryOnce = async (code = wrong) => {
    const { status, message, attempts_left: left } = await tryCode({ channel, story }, mine.contact, code);
    note({ status, text: `${message} ${t('attempts', { n: left })}`, docs: 'validateCode' });
    return status;
  };
  const tryFive = async () => { for (let i = 0; i < 5; i++) if (await tryOnce() === 'LOCKED') return; };
  const expire = async () => {
    const life = (Date.parse(mine.answer.expired_at) - Date.parse(mine.answer.timestamp)) / 1000;
    await api.post('/sandbox/clock', { advance: Math.ceil(life) + 1 }, on);
    story.end('expired');
    story.add('expired', { tone: 'bad' });
    note({ status: 'EXPIRED', text: t('clockMoved', { s: Math.ceil(life) + 1 }), docs: 'advanceClock' });
  };
  const again = async () => {
    try { await request({ contact_id: mine.contact, expires: 300 }); } catch (error) {
      note({ status: error.status, text: `${error.message} Retry-After: ${error.retryAfter}`, docs: 'requestCode' });
    }
  };
  const sayAs = async (number, message, docsOf = 'requestLink') => {
    await api.post(`/sandbox/phones/${number}/send`, { type: 'text', message }, on);
    note({ status: 'SENT', text: t('saidAs', { number: mask(number) }), docs: docsOf });
  };
  const other = phones.list?.find((one) => one.channel === channel && one.number !== digits && one.on_network)?.number || '6281290009999';

  const buttons = kind === 'code' ? [
    ['wrongCode', open, () => tryOnce()],
    ['wrongFive', open, tryFive],
    ['again', mine && !real, again],
    ['reuse', mine?.ended === 'approved' && codes[0], () => tryOnce(codes[0])],
  ] : real ? [] : [
    ['otherPhone', open, () => sayAs(other, mine.prompt)],
    ['edited', open, () => sayAs(digits, `${mine.prompt} ${t('please')}`)],
    ['reuseLink', mine?.ended === 'approved', () => sayAs(digits, mine.prompt)],
  ];
  if (!real) buttons.push(['expire', open, expire]);
  return html`<${Card} title=${t('tryFailure')}>
    <div class="row">${buttons.map(([name, able, act]) => html`<${Button} key=${name} disabled=${!able} onClick=${act}>${t(name)}<//>`)}</div>
    ${!mine && html`<p class="muted">${t('tryFailureHint')}</p>`}
    <ul class="outcomes" aria-live="polite">${outcomes.map((one) => html`<li key=${one.key}><${Badge} tone=${tones[one.status] ?? 'bad'}>${one.status}<//>
      <span class="grow"><bdi>${one.text}</bdi></span><${Time} at=${new Date(one.at).toISOString()} /><a href=${one.docs === 'advanceClock' ? '/docs#/Sandbox/advanceClock' : docs(one.docs)} target="_blank">${t('rules')}</a></li>`)}</ul>
  <//>`;
}
