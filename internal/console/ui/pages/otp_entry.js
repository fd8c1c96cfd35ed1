// What a login page asks for once a code or a link was requested: the code, or the callback of the link.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { texts } from '../i18n.js';
import { Note } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Left } from '../parts/time.js';
import { phone, mask } from '../parts/who.js';
import { tryCode } from './otp_code.js';

const t = texts('otp');

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** The entry for a request. While demo.wanted, it goes on by itself. */
export function Entry({ kind, run, timeline, ...rest }) {
  if (run.ended === 'approved') return html`<${Approved} run=${run} called=${timeline.steps.findLast((step) => step.id === 'callback')} />`;
  if (run.ended === 'not_sent') {
    return html`<${Note} kind="bad" title=${t('notSent')}><bdi lang="en">${run.why}</bdi> ${t('notSentDo')}<//>`;
  }
  return kind === 'code' ? html`<${CodeEntry} run=${run} timeline=${timeline} ...${rest} />` : html`<${LinkEntry} run=${run} ...${rest} />`;
}

// With a callback the page knows only what its server received.
function Approved({ run, called }) {
  if (run.callback && !called) return html`<p role="status">${t('waiting')}</p>`;
  return called?.tone === 'bad' ? html`<${Note} kind="bad" title=${t('callbackFailed')}>${called.reason}<//>`
    : html`<${Note} kind="good" title=${t('welcome')}>${mask(phone(run.contact))}<//>`;
}

function Expiry({ run }) {
  const life = Date.parse(run.answer.expired_at) - Date.parse(run.answer.timestamp);
  const [until] = useState(() => new Date(Date.now() + life).toISOString());
  return html`<p class="muted">${run.ended === 'expired' ? t('expired') : html`${t('left')} <${Left} until=${until} />`}</p>`;
}

function CodeEntry({ channel, timeline, run, codes, demo }) {
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
    if (!demo.wanted || !codes[0]) return;
    demo.wanted = false;
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

function LinkEntry({ run, real, openPhone, tap, demo }) {
  const there = useRef(true);
  useEffect(() => {
    if (demo.wanted) {
      demo.wanted = false;
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
