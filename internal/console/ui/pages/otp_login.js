// A login page such as a customer has: it takes the code, or waits for the callback of the link.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { api } from '../api.js';
import { texts } from '../i18n.js';
import { Card, Note, Empty } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Left } from '../parts/time.js';
import { phone, mask } from '../parts/who.js';
import { AsCode } from '../parts/code.js';

const t = texts('otp');

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Tries a code and adds what happens to the timeline. */
export async function tryCode({ channel, timeline }, contact, code) {
  const { data, message } = await api.post('/otp/code/validate', { contact_id: contact, code }, { channel });
  if (data.status === 'LOCKED' || data.status === 'EXPIRED') timeline.end(data.status.toLowerCase());
  return { ...data, message };
}

export function LoginPage({ channel, kind, timeline, real, codes, openPhone, tap, request, contact }) {
  const { run } = timeline;
  const mine = run?.kind === kind ? run : null;
  return html`<${Card} title=${t('login')} class="otp-login"
    actions=${kind === 'code' && html`<${AsCode} small
      request=${{ method: 'POST', path: '/api/otp/code/validate', headers: { 'X-Channel': channel },
      body: { contact_id: contact, code: '123456' } }} />`}>
    ${!mine ? html`<${Empty} title=${t(kind === 'code' ? 'nobody' : 'nobodyLink')}>
      ${!real && contact.length > 5 && html`<${Demo} request=${request} contact=${contact} />`}<//>`
      : mine.ended === 'approved' ? html`<${Approved} run=${mine} called=${timeline.steps.findLast((step) => step.id === 'callback')} />`
        : mine.ended === 'not_sent' ? html`<${Note} kind="bad" title=${t('notSent')}><bdi lang="en">${mine.why}</bdi> ${t('notSentDo')}<//>`
        : kind === 'code' ? html`<${CodeEntry} channel=${channel} timeline=${timeline} run=${mine} codes=${codes} />`
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

function CodeEntry({ channel, timeline, run, codes }) {
  const [text, setText] = useState('');
  const [said, setSaid] = useState(null);
  const id = useId();
  const there = useRef(true);
  useEffect(() => () => { there.current = false; }, []);
  const check = async (code) => setSaid(await tryCode({ channel, timeline }, run.contact, code));
  const submit = (event) => { event.preventDefault(); if (text.trim()) check(text.trim())
    .catch((error) => setSaid({ message: error.message })); };
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
      <input id=${id} class="code-input" autocomplete="one-time-code" maxlength="64" value=${text}
        onInput=${(event) => setText(event.target.value)} /></div>
    <${Button} kind="primary" type="submit">${t('logIn')}<//>
    <${Expiry} run=${run} />
    <div role="status">${said && html`<${Note} kind="warn" title=${said.status}>${said.message}
      ${said.attempts_left != null && ` ${t('attempts', { n: said.attempts_left })}`}<//>`}</div>
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
    ${real ? html`<${Copy} text=${run.answer.link} what=${t('kind.link')}>${t('copyLink')}<//>`
      : html`<${Button} kind="primary" icon="messages" onClick=${openPhone}>${t('openChat')}<//>
      <p class="muted"><a href=${run.answer.link} target="_blank" rel="noreferrer noopener">${t('openLink')}</a></p>`}
    <p role="status">${t(run.callback ? 'waiting' : 'waitingMessage')}</p>
    <${Expiry} run=${run} />`;
}
