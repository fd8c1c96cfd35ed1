// From the sandbox to WhatsApp: what that changes, what it does not, and who may be written to.
import { html } from '../view.js';
import { api } from '../api.js';
import { go, setQuery } from '../router.js';
import { texts } from '../i18n.js';
import { AsCode } from '../parts/code.js';
import { Dialog } from '../parts/dialog.js';
import { useForm, Form, Submit } from '../parts/form.js';
import { toast } from '../parts/toast.js';
import { WhoMay, numbers, requireNumbers } from './channel-settings.js';

const t = texts('channel');

export function GoLive({ channel, changed }) {
  const { code } = channel;
  const form = useForm({ who: 'only', allow: '' }, async (values) => {
    requireNumbers(values, 'allow');
    await api.post(`/manage/channels/${code}/go-live`, wanted(values));
    await changed();
    go(`/channels/${code}/pair`);
    toast(t('liveNow'), { kind: 'good' });
  });
  const name = html`<code>${code}</code>`;
  return html`<${Dialog} wide open title=${t('live', { code })} onClose=${() => setQuery({ golive: null })}>
    <div class="grid2">
      <section><h3>${t('changes')}</h3><ul class="dots">${[1, 2, 3, 4].map((n) => html`<li key=${n}>${t(`change.${n}`)}</li>`)}</ul></section>
      <section><h3>${t('stays')}</h3><ul class="dots">${[1, 2, 3].map((n) => html`<li key=${n}>${t(`stay.${n}`, { code: name })}</li>`)}</ul></section>
    </div>
    <${Form} form=${form}>
      <${WhoMay} form=${form} name="allow" autofocus />
      <div class="row"><${Submit} form=${form}>${t('goLive')}<//><${AsCode} request=${{ method: 'POST', path: `/api/manage/channels/${code}/go-live`, body: wanted(form.values) }} /></div>
    <//>
  <//>`;
}

const wanted = ({ who, allow }) => (who === 'all' ? { everybody: true } : { allow: numbers(allow) });
