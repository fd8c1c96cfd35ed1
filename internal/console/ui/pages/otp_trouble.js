// What goes wrong with one-time passwords, on demand, and where the rules for it are.
import { html } from '../view.js';
import { api } from '../api.js';
import { texts } from '../i18n.js';
import { Button } from '../parts/button.js';
import { Time } from '../parts/time.js';
import { mask } from '../parts/who.js';
import { Badge } from '../parts/status.js';
import { tryCode } from './otp_code.js';

const t = texts('otp');

const docs = (operation) => `/docs#/One-time%20passwords/${operation}`;
const tones = { APPROVED: 'good', SENT: '' };

export function Trouble({ channel, kind, run, timeline, real, codes, phones, digits, request }) {
  const { outcomes, note } = timeline;
  const open = !run.ended;
  const on = { channel };

  // A code that is surely wrong has the form of the right one.
  const wrong = (codes[0] || '000000').replace(/./, (c) => (c === '7' ? '8' : '7'));
  const tryOnce = async (code = wrong) => {
    const { status, message, attempts_left: left } = await tryCode({ channel, timeline }, run.contact, code);
    note({ status, text: `${message} ${t('attempts', { n: left })}`, docs: 'validateCode' });
    return status;
  };
  const tryFive = async () => { for (let i = 0; i < 5; i++) if (await tryOnce() === 'LOCKED') return; };
  const expire = async () => {
    const life = (Date.parse(run.answer.expired_at) - Date.parse(run.answer.timestamp)) / 1000;
    await api.post('/sandbox/clock', { advance: Math.ceil(life) + 1 }, on);
    timeline.end('expired');
    timeline.add('expired', { tone: 'bad' });
    note({ status: 'EXPIRED', text: t('clockMoved', { s: Math.ceil(life) + 1 }), docs: 'advanceClock' });
  };
  const again = async () => {
    try { await request({ contact_id: run.contact, expires: 300 }); } catch (error) {
      note({ status: error.status, text: `${error.message} Retry-After: ${error.retryAfter}`, docs: 'requestCode' });
    }
  };
  const sayAs = async (number, message, rules = 'requestLink') => {
    await api.post(`/sandbox/phones/${number}/send`, { type: 'text', message }, on);
    note({ status: 'SENT', text: t('saidAs', { number: mask(number) }), docs: rules });
  };
  const other = phones.list?.find((one) => one.channel === channel && one.number !== digits && one.on_network)?.number || '6281290009999';

  const buttons = kind === 'code' ? [
    ['wrongCode', open, () => tryOnce()],
    ['wrongFive', open, tryFive],
    ['again', !real, again],
    ['reuse', run.ended === 'approved' && codes[0], () => tryOnce(codes[0])],
  ] : real ? [] : [
    ['otherPhone', open, () => sayAs(other, run.prompt)],
    ['edited', open, () => sayAs(digits, `${run.prompt} ${t('please')}`)],
    ['reuseLink', run.ended === 'approved', () => sayAs(digits, run.prompt)],
  ];
  if (!real) buttons.push(['expire', open, expire]);
  return html`<div class="row">${buttons.map(([name, able, act]) => html`<${Button} key=${name} disabled=${!able} onClick=${act}>${t(name)}
      <//>`)}</div>
    <ul class="outcomes" aria-live="polite">
      ${outcomes.map((one) => html`<li key=${one.key}><${Badge} tone=${tones[one.status] ?? 'bad'}>${one.status}<//>
      <span class="grow"><bdi>${one.text}</bdi></span><${Time} at=${new Date(one.at).toISOString()} />
        <a href=${one.docs === 'advanceClock' ? '/docs#/Sandbox/advanceClock' : docs(one.docs)} target="_blank">${t('rules')}</a>
        </li>`)}</ul>`;
}
