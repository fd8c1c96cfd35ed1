// A login page such as a customer has. What it asks for comes with the first request.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Card, Empty } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { lazy } from '../parts/lazy.js';

const t = texts('otp');
export const Entry = lazy(() => import('./otp_entry.js').then((module) => module.Entry), 3);

const slowly = { wanted: false }; // whether the demo is to go on by itself

export function LoginPage({ channel, kind, timeline, real, request, contact, ...rest }) {
  const { run } = timeline;
  const mine = run?.kind === kind ? run : null;
  return html`<${Card} title=${t('login')} class="otp-login"
    actions=${kind === 'code' && html`<${AsCode} small
      request=${{ method: 'POST', path: '/api/otp/code/validate', headers: { 'X-Channel': channel },
      body: { contact_id: contact, code: '123456' } }} />`}>
    ${mine ? html`<${Entry} channel=${channel} kind=${kind} timeline=${timeline} real=${real} run=${mine} demo=${slowly} ...${rest} />`
      : html`<${Empty} title=${t(kind === 'code' ? 'nobody' : 'nobodyLink')}>
        ${!real && contact.length > 5 && html`<${Demo} request=${request} contact=${contact} />`}<//>`}
  <//>`;
}

/** Does all steps, slowly enough to be followed. */
function Demo({ request, contact }) {
  const run = async () => { slowly.wanted = true; await request({ contact_id: contact, name: 'Demo', expires: 300 }); };
  return html`<${Button} need="operator" icon="play" onClick=${run}>${t('demo')}<//>`;
}
