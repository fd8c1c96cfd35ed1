// From the sandbox to WhatsApp: what that changes, what it does not, and who may be written to.
import { html } from '../view.js';
import { api } from '../api.js';
import { go, setQuery } from '../router.js';
import { networkBy, server } from '../state.js';
import { texts } from '../i18n.js';
import { AccountFields, networkTitle, toAccount } from '../parts/account.js';
import { WhoMay, numbers, requireNumbers } from '../parts/allow_only.js';
import { AsCode } from '../parts/as_code.js';
import { Dialog } from '../parts/dialog.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { toast } from '../parts/toast.js';

const t = texts('channel');

export function GoLive({ channel, changed }) {
  const { code } = channel;
  const real = (server.value?.networks || []).filter((n) => !n.simulated).sort((a, b) => b.pairing.length - a.pairing.length);
  const form = useForm({ who: 'only', allow: '', network: real[0]?.name }, async (values) => {
    requireNumbers(values, 'allow');
    await api.post(`/manage/channels/${code}/go-live`, wanted(values));
    await changed();
    go(`/channels/${code}/pair`, { checked: paired ? null : 1 });
    if (paired) toast(t('liveNow'), { kind: 'good' });
  });
  const name = html`<code>${code}</code>`;
  const network = networkBy(form.values.network);
  const paired = !network?.credentials.length;
  return html`<${Dialog} wide open title=${t('live', { code, title: networkTitle(network) })} onClose=${() => setQuery({ golive: null })}>
    <div class="grid2">
      <section><h3>${t('changes')}</h3><ul class="dots">${[1, paired ? 2 : 'account', 3, 4].map((n) => html`<li key=${n}>
        ${t(`change.${n}`)}</li>`)}
        </ul></section>
      <section><h3>${t('stays')}</h3><ul class="dots">${[1, 2, 3].map((n) => html`<li key=${n}>${t(`stay.${n}`, { code: name })}</li>`)}
        </ul></section>
    </div>
    <${Form} form=${form}>
      ${real.length > 1 && html`<${Field} form=${form} name="network" type="radio" label=${t('network')}
        options=${real.map((n) => [n.name, networkTitle(n)])} />`}
      <${AccountFields} key=${form.values.network} form=${form} network=${network} isNew />
      <${WhoMay} form=${form} name="allow" autofocus />
      <div class="row"><${Submit} need="operator" form=${form}>${t('goLive')}<//>
        <${AsCode} request=${{ method: 'POST', path: `/api/manage/channels/${code}/go-live`, body: wanted(form.values, true) }} /></div>
    <//>
  <//>`;
}

const wanted = ({ who, allow, network, ...values }, shown) => ({
  ...(who === 'all' ? { everybody: true } : { allow: numbers(allow) }),
  ...(network && { network }), ...toAccount(values, networkBy(network), shown) });
