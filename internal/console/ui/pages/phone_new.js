// The form that adds a simulated phone.
import { html } from '../view.js';
import { api } from '../api.js';
import { go } from '../router.js';
import { texts } from '../i18n.js';
import { AsCode } from '../parts/as_code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';

const t = texts('phone');

export function NewPhone({ channel, phones, close }) {
  const toBody = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value));
  const form = useForm({ number: '', name: '' }, async (values) => {
    const { data } = await api.post('/sandbox/phones', toBody(values), { channel });
    await phones.load.reload();
    close();
    go(`/phone/${data.number}`, { to: phones.shown.length > 1 ? channel : null });
  });
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="number" type="tel" label=${t('number')} hint=${t('numberHint')} autofocus />
    <${Field} form=${form} name="name" label=${t('trait.name')} maxlength="100" />
    <div class="row"><${Submit} need="support" form=${form}>${t('createPhone')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/sandbox/phones', headers: { 'X-Channel': channel },
        body: toBody(form.values) }} /></div><//>`;
}
