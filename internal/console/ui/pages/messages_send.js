// The form of a message sent from the console: for the first try, and to answer somebody.
import { html } from '../view.js';
import { api } from '../api.js';
import { href, setQuery } from '../router.js';
import { channelBy, formChannel, manyChannels } from '../state.js';
import { texts } from '../i18n.js';
import { Note } from '../parts/card.js';
import { ChannelField } from '../parts/channel_field.js';
import { AsCode } from '../parts/as_code.js';
import { useForm, Form, Field, Submit, toContact } from '../parts/form.js';
import { toast } from '../parts/toast.js';
import { number } from '../parts/who.js';

const t = texts('messages');
const core = texts('core');

export function SendForm({ to = '', from, reply, close, onSent }) {
  const form = useForm({ channel: from || formChannel.value?.code || '', to: to || (!from && formChannel.value?.simulated
    ? '6281234567890' : ''), message: '' }, async (values) => {
    if (!values.channel) throw { errors: { channel: [core('picker.choose')] } };
    const { data } = await api.post('/send-message/text', { ...wanted(values), contact_id: toContact(values.to) },
      { channel: values.channel });
    close();
    onSent();
    toast(t(data.status === 'FAILED' ? 'sentFailed' : 'sent'),
      { kind: data.status === 'FAILED' ? 'bad' : 'good',
        action: { label: core('keys.open'), run: () => setQuery({ open: `${values.channel}.${data.message_id}` }) } });
  });
  const wanted = (values) => ({ contact_id: `${number(values.to)}@c.us`, message: values.message, ...(reply && { reply_to: reply }) });
  const { values } = form;
  return html`<${Form} form=${form}>
    ${values.channel && !channelBy(values.channel)?.simulated && html`<${Note} kind="warn">${t('realPhone')}<//>`}
    ${reply && html`<p class="muted">${t('replyTo')} <code>${reply}</code></p>`}
    ${manyChannels.value && html`<${ChannelField} form=${form} />`}
    <${Field} form=${form} name="to" path="contact_id" type="tel" label=${t('contact')} required autocomplete="off" />
    <${Field} form=${form} name="message" type="textarea" label=${t('text')} required autofocus maxlength="4096" />
    <div class="row"><${Submit} need="support" form=${form} icon="send">${t('sendNow')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/send-message/text', headers: manyChannels.value && { 'X-Channel': values.channel },
        body: wanted(values) }} /></div>
    <p class="hint"><a href=${href('/api-recipes')}>${t('otherKinds')}</a></p>
  <//>`;
}
