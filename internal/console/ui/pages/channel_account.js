// The account of a channel whose network takes credentials: what the network says of it, and how to replace them.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { query } from '../router.js';
import { networkBy } from '../state.js';
import { texts } from '../i18n.js';
import { AccountFields, toAccount } from '../parts/account.js';
import { Card, Facts, Note } from '../parts/card.js';
import { AsCode } from '../parts/as_code.js';
import { useForm, Form, Submit } from '../parts/form.js';
import { Badge } from '../parts/status.js';
import { Remedy } from '../parts/remedy.js';
import { Time, Said } from '../parts/time.js';
import { toast } from '../parts/toast.js';
import { Who } from '../parts/who.js';

const t = texts('account');

const tones = { CONNECTED: 'good', GREEN: 'good', YELLOW: 'warn', RED: 'bad', APPROVED: 'good', REJECTED: 'bad' };
const said = (word) => (word ? html`<${Badge} tone=${tones[word]}>${word}<//>` : html`<span class="muted">${t('unknown')}</span>`);

export function AccountPanel({ channel, changed }) {
  const account = channel[channel.network];
  return html`
    ${query.value.checked && html`<${Note} kind="good">${t('checked')}<//>`}
    <${Findings} channel=${channel} />
    <div class="grid2">
      <${Card} title=${t('title')}>
        ${account ? html`<${Facts} rows=${rows(channel, account)} />` : html`<p class="muted">${t('none')}</p>`}<//>
      <${Replace} channel=${channel} changed=${changed} />
    </div>`;
}

const rows = (channel, { phone_number_id: phone, waba_id: business, graph_url: address, token_expires_at: expires, reports_since: since,
  ...account }) => [
  [t('number'), channel.number && html`<${Who} number=${channel.number} />`],
  [t('status'), said(account.number_status)],
  [t('quality'), said(account.quality)],
  [t('limit'), said(account.messaging_limit)],
  [t('throughput'), said(account.throughput)],
  [t('codes'), said(account.codes_template)],
  [t('token'), expires ? t('expires', { time: html`<${Time} at=${expires} />` }) : t('never')],
  [t('reports'), since ? t('since', { time: html`<${Time} at=${since} />` }) : t('noReports')],
  [t('webhook'), account.webhook_url && html`<code>${account.webhook_url}</code>`],
  [t('label.phone_number_id'), html`<code>${phone}</code>`],
  [t('label.waba_id'), html`<code>${business}</code>`],
  [t('label.graph_url'), address && html`<code>${address}</code>`],
];

// What the checks of the server find in this account.
function Findings({ channel: { code, status } }) {
  const { data } = useLoad(() => api.get('/manage/doctor'), [code, status]);
  return data?.data.findings.filter((finding) => finding.channel === code && finding.level !== 'ok').map((finding) => html`
    <${Note} key=${finding.name + finding.sentence} kind=${finding.level === 'problem' ? 'bad' : 'warn'}>
      <${Said} text=${finding.sentence} />
      ${finding.remedy && html` <${Remedy} text=${finding.remedy} />`}<//>`);
}

function Replace({ channel: { code, network: name }, changed }) {
  const network = networkBy(name);
  const path = `/manage/channels/${code}/credentials`;
  const [given, setGiven] = useState(null); // to be given to Meta by hand
  const form = useForm(Object.fromEntries(network.credentials.map((one) => [one.name, ''])), async (values) => {
    const { data } = await api.put(path, toAccount(values, network));
    setGiven(values.webhook === 'none' ? data[name] : null);
    form.reset();
    toast(t('replaced'), { kind: 'good' });
    await changed();
  });
  return html`<${Card} title=${t('replace')}><p class="muted">${t('replaceText')}</p>
    ${given?.callback_url && html`<${Note} kind="good" title=${t('byHand')}><${Facts} rows=${[
      [t('callback'), html`<code>${given.callback_url}</code>`], [t('verify'), html`<code>${given.verify_token}</code>`]]} /><//>`}
    <${Form} form=${form}><${AccountFields} form=${form} network=${network} />
      <div class="row"><${Submit} form=${form}>${t('replace')}<//>
        <${AsCode} request=${{ method: 'PUT', path: `/api${path}`, body: toAccount(form.values, network, true) }} /></div><//><//>`;
}
