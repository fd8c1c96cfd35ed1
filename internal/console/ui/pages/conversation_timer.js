// The form of a conversation that sets when its messages disappear.
import { html } from '../view.js';
import { api, useLoad } from '../api.js';
import { texts, duration } from '../i18n.js';
import { Failed, Loading } from '../parts/card.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { toast } from '../parts/toast.js';

const t = texts('conversations');
const core = texts('core');

const timers = [0, 86400, 604800, 7776000]; // seconds

/** When messages disappear. */
export function Timer({ to, channel, close }) {
  const load = useLoad(async () => {
    if (to.contact_id) return (await api.get('/contact/info', { query: to, channel })).data;
    for (let offset = 0; ; offset += 100) {
      const { data } = await api.get('/groups', { query: { limit: 100, offset }, channel });
      const group = data.find(({ id }) => id === to.group_id);
      if (group || !data[99]) return { disappearing_seconds: 0, ...group };
    }
  }, [to.group_id || to.contact_id]);
  return load.data ? html`<${TimerForm} now=${load.data.disappearing_seconds} to=${to} channel=${channel} close=${close} />`
    : load.error ? html`<${Failed} load=${load} />` : html`<${Loading} rows=${2} />`;
}

function TimerForm({ now, to, channel, close }) {
  const form = useForm({ seconds: String(now) }, async ({ seconds }) => {
    const { data } = await api.put('/chat/disappearing', { ...to, seconds: Number(seconds) }, { channel });
    if (data?.error) throw new Error(data.error.message);
    toast(t('timerSaved'), { kind: 'good' });
    close();
  });
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="seconds" type="select" label=${t('timerLabel')} autofocus
      options=${[...new Set([...timers, now])].map((s) => [String(s), s ? t('timerAfter', { time: duration(s * 1000) })
        : t('timerOff')])} />
    <div class="row"><${Submit} need="support" form=${form}>${core('save')}<//></div><//>`;
}
