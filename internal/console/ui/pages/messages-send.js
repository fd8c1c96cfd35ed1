// A message sent from here: for the first try, and to answer somebody.
import { html } from '../view.js';
import { api } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { channels, chosen, channelBy } from '../state.js';
import { texts } from '../i18n.js';
import { Note } from '../parts/card.js';
import { Dialog } from '../parts/dialog.js';
import { AsCode } from '../parts/code.js';
import { useForm, Form, Field, Submit, contactOf } from '../parts/form.js';
import { number } from '../parts/who.js';
import { toast } from '../parts/toast.js';

const t = texts('messages');
const core = texts('core');

const close = () => setQuery({ send: null, to: null, from: null, reply: null });

/** The dialog that ?send= opens; ?to=, ?from= and ?reply= fill it in. */
export function SendDialog({ onSent }) {
  const { send, to, from, reply } = query.value;
  if (!send || !chosen.value) return null;
  return html`<${Dialog} open title=${t('send')} onClose=${close}><${SendForm} to=${to} from=${from} reply=${reply} onSent=${onSent} /><//>`;
}

function SendForm({ to = '', from, reply, onSent }) {
  const form = useForm({ channel: channelBy(from) ? from : chosen.value.code, to: to || (chosen.value.network === 'sandbox' ? '6281234567890' : ''), message: '' }, async (values) => {
    const { data } = await api.post('/send-message/text', { ...wanted(values), contact_id: contactOf(values.to) }, { channel: values.channel });
    close();
    onSent();
    toast(t(data.status === 'FAILED' ? 'sentFailed' : 'sent'), { kind: data.status === 'FAILED' ? 'bad' : 'good', action: { label: core('keys.open'), run: () => setQuery({ open: `${values.channel}.${data.message_id}` }) } });
  });
  const wanted = (values) => ({ contact_id: `${number(values.to)}@c.us`, message: values.message, ...(reply && { reply_to: reply }) });
  const { values } = form;
  return html`<${Form} form=${form}>
    ${channelBy(values.channel)?.network !== 'sandbox' && html`<${Note} kind="warn">${t('realPhone')}<//>`}
    ${reply && html`<p class="muted">${t('replyTo')} <code>${reply}</code></p>`}
    ${channels.value.length > 1 && html`<${Field} form=${form} name="channel" type="select" label=${core('page.channel')} options=${channels.value.map((one) => one.code)} />`}
    <${Field} form=${form} name="to" path="contact_id" type="tel" label=${t('contact')} required autocomplete="off" />
    <${Field} form=${form} name="message" type="textarea" label=${t('text')} required autofocus maxlength="4096" />
    <div class="row"><${Submit} form=${form} icon="send">${t('sendNow')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/send-message/text', headers: channels.value.length > 1 && { 'X-Channel': values.channel }, body: wanted(values) }} /></div>
    <p class="hint"><a href=${href('/api-recipes')}>${t('otherKinds')}</a></p>
  <//>`;
}
