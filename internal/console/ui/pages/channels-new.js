// A new channel: in the sandbox, or on WhatsApp, where it is paired next.
import { html } from '../view.js';
import { api } from '../api.js';
import { go, query, setQuery } from '../router.js';
import { reloadChannels, server } from '../state.js';
import { texts } from '../i18n.js';
import { AsCode } from '../parts/code.js';
import { Dialog } from '../parts/dialog.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';

const t = texts('channels');

/** The dialog that ?new= opens. */
export function NewChannel() {
  const network = query.value.new;
  return html`<${Dialog} open=${Boolean(network)} title=${t('new')} onClose=${() => setQuery({ new: null })}><${NewForm} network=${network} /><//>`;
}

function NewForm({ network }) {
  const form = useForm({ network: network === 'whatsapp' ? network : 'sandbox', code: '', name: '' }, async (values) => {
    const { data } = await api.post('/manage/channels', wanted(values));
    await reloadChannels();
    go(`/channels/${data.code}${data.network === 'sandbox' ? '' : '/pair'}`);
  });
  const networks = ['sandbox', 'whatsapp'].filter((name) => !server.value?.networks || server.value.networks.includes(name));
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="network" label=${t('kind')} type="radio" options=${networks.map((name) => [name, t(name === 'sandbox' ? 'sandbox' : 'whatsapp')])} />
    <${Field} form=${form} name="code" label=${t('code')} hint=${t('codeHint')} required autofocus autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="32" class="mono" />
    <${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} autocomplete="off" maxlength="60" />
    <div class="row"><${Submit} form=${form}>${t('create')}<//><${AsCode} request=${{ method: 'POST', path: '/api/manage/channels', body: wanted(form.values) }} /></div>
  <//>`;
}

const wanted = ({ network, code, name }) => ({ code, network, ...(name && { name }) });
