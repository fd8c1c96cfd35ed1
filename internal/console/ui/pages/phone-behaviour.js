// How a phone behaves, and what goes wrong on the network when somebody asks for it.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { masked, reloadChannels } from '../state.js';
import { texts } from '../i18n.js';
import { Card, Note } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { toast } from '../parts/toast.js';
import { confirm } from '../parts/dialog.js';
import { phone, mask } from '../parts/who.js';

const t = texts('phone');

const flags = ['online', 'blocks', 'on_network', 'lid_only'];

/** Each change counts at once. onChange is called after it. */
export function PhoneBehaviour({ channel, device, onChange }) {
  const path = `/sandbox/phones/${device.number}`;
  const [last, setLast] = useState({ online: !device.online });
  const [errors, setErrors] = useState({});
  const [typed, setTyped] = useState({}); // and not left yet
  const set = async (name, value) => {
    const body = { [name]: value };
    setLast(body);
    setErrors({});
    try { await api.patch(path, body, { channel }); } catch (error) {
      setErrors(error.errors);
      toast(error.message, { kind: 'bad' });
    }
    await onChange();
    setTyped({});
  };
  const form = { values: { ...device, name: mask(device.name), ...typed }, errors, set };
  const text = (name) => ({
    form: { ...form, set: (_, value) => setTyped({ ...typed, [name]: value }) },
    name, label: t(`trait.${name}`), onChange: ({ target }) => set(name, name === 'name' ? target.value : Number(target.value)),
  });
  return html`<${Card} title=${t('behaviour')} actions=${html`<${AsCode} small request=${{ method: 'PATCH', path: `/api${path}`, headers: { 'X-Channel': channel }, body: last }} />`}>
    <div class="form">
      ${flags.map((name) => html`<${Field} key=${name} form=${form} name=${name} type="checkbox" label=${t(`trait.${name}`)} />`)}
      <${Field} form=${form} name="reads" type="select" label=${t('trait.reads')} options=${['at_once', 'when_open', 'never'].map((value) => [value, t(`reads.${value}`)])} />
      <${Field} ...${text('delay_ms')} type="number" min="0" max="60000" step="100" />
      <${Field} ...${text('name')} maxlength="100" readonly=${masked.value} />
    </div>
  <//>`;
}

const kinds = ['refuse', 'late', 'twice', 'drop_socket', 'log_out', 'reachout_limit'];

/** Faults for the next sends of a channel, and those that still wait. */
export function NetworkBehaviour({ channel, device }) {
  const waiting = useLoad(() => api.get('/sandbox/faults', { channel }), [channel], { on: ['message.status', 'channel.status'] });
  const refresh = () => Promise.all([waiting.reload(), reloadChannels()]);
  const bodyOf = ({ fault, times, mine, reason }) => ({ fault, times: Number(times), ...(mine && { to: device.number }), ...(fault === 'refuse' && reason && { reason }) });
  const form = useForm({ fault: 'refuse', times: 1, mine: true, reason: '' }, async (values) => {
    await api.post('/sandbox/faults', bodyOf(values), { channel });
    await refresh();
  });
  const list = waiting.data?.data || [];
  const clear = async () => { await api.del('/sandbox/faults', { channel }); await refresh(); };
  const forget = async () => {
    if (!await confirm({ title: t('forget'), text: t('forgetText', { channel }), action: t('forget'), danger: true })) return;
    await api.del('/sandbox', { channel });
    location.reload();
  };
  return html`<${Card} title=${t('network')} actions=${html`<${AsCode} small request=${{ method: 'POST', path: '/api/sandbox/faults', headers: { 'X-Channel': channel }, body: bodyOf(form.values) }} />`}>
    ${list.length > 0 && html`<${Note} kind="bad" title=${t('faultsOn')}>
      <ul>${list.map((fault, i) => html`<li key=${i}>${t('faultWaits', { what: t(`fault.${fault.fault}`), n: fault.times })}${fault.to && ` → ${mask(phone(fault.to))}`}</li>`)}</ul>
      <${Button} small onClick=${clear}>${t('faultsOff')}<//><//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="fault" type="select" label=${t('fault')} options=${kinds.map((kind) => [kind, t(`fault.${kind}`)])} />
      ${form.values.fault === 'refuse' && html`<${Field} form=${form} name="reason" label=${t('reason')} maxlength="200" />`}
      <${Field} form=${form} name="times" type="number" label=${t('times')} min="1" max="1000" />
      <${Field} form=${form} name="mine" type="checkbox" label=${t('onlyThis')} />
      <div class="row"><${Submit} form=${form} kind="danger">${t('faultAdd')}<//><${Button} kind="quiet" onClick=${forget}>${t('forget')}<//></div>
    <//>
  <//>`;
}
