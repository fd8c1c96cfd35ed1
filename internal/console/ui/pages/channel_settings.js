// The settings of a channel.
import { html } from '../view.js';
import { api } from '../api.js';
import { networkBy } from '../state.js';
import { texts, duration } from '../i18n.js';
import { WhoMay, numbers, requireNumbers } from '../parts/allow_only.js';
import { Card } from '../parts/card.js';
import { AsCode } from '../parts/as_code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { toLabels } from '../parts/labels.js';
import { LabelsField } from '../parts/labels_field.js';
import { toast } from '../parts/toast.js';
import { phone } from '../parts/who.js';

const t = texts('channel');
const core = texts('core');

const units = { h: 3600, m: 60, s: 1, ms: 0.001 };
/** Seconds of a length of time like 1h30m0s. */
const seconds = (text) => [...text.matchAll(/([\d.]+)(ms|[hms])/g)].reduce((sum, [, n, unit]) => sum + n * units[unit], 0);

const keeps = [86400, 604800, 2592000, 7776000, 31536000]; // seconds: what most choose

export function Settings({ channel, changed }) {
  const { name, settings, labels } = channel;
  const retention = settings.retention == null ? '' : String(seconds(settings.retention));
  const form = useForm({
    name, labels: labels.join(', '), 'settings.pace': settings.pace ? String(seconds(settings.pace)) : '', 'settings.ttl': settings.ttl
      ? String(seconds(settings.ttl) / 3600) : '',
    'settings.retention': retention, who: settings.allow_only?.length ? 'only' : 'all', 'settings.allow_only': (settings.allow_only || [])
      .map(phone).join('\n'),
    'settings.proxy': settings.proxy || '', 'settings.careful': typeof settings.careful === 'object' ? 'own' : settings.careful || 'off',
    'settings.calls.reject': Boolean(settings.calls?.reject), 'settings.calls.text': settings.calls?.text || '',
    'settings.cloud.on_unknown': settings.cloud?.on_unknown || 'resend', 'settings.cloud.mark_read': Boolean(settings.cloud?.mark_read),
    'settings.cloud.outside_window.template': settings.cloud?.outside_window?.template || '',
    'settings.cloud.outside_window.language': settings.cloud?.outside_window?.language || '',
    'settings.opt_out.words': (settings.opt_out?.words || []).join(', '), 'settings.opt_out.reply': settings.opt_out?.reply || '',
  }, async (values) => {
    requireNumbers(values, 'settings.allow_only');
    await api.patch(`/manage/channels/${channel.code}`, wanted(values, settings));
    toast(t('saved'), { kind: 'good' });
    await changed();
  });
  const hasAccount = networkBy(channel.network)?.credentials.length > 0; // without a phone, nothing rings
  const choices = [...new Set([...keeps, ...(Number(retention) ? [Number(retention)] : [])])].sort((a, b) => a - b);
  return html`<${Card}><${Form} form=${form} class="form narrow">
    <${Field} form=${form} name="name" label=${t('name')} required maxlength="60" autocomplete="off" />
    <${LabelsField} form=${form} />
    <${Field} form=${form} name="settings.pace" label=${t('pace')} hint=${t('paceHint')} inputmode="decimal" autocomplete="off" />
    <${Field} form=${form} name="settings.ttl" label=${t('ttl')} hint=${t('ttlHint')} inputmode="decimal" autocomplete="off" />
    <${Field} form=${form} name="settings.retention" label=${t('retention')} type="select"
      options=${[['', t('keep.ever')], ['0', t('keep.none')],
        ...choices.map((s) => [String(s), t('keep.for', { time: duration(s * 1000) })])]} />
    <${WhoMay} form=${form} name="settings.allow_only" />
    <${Field} form=${form} name="settings.careful" label=${t('careful')} hint=${t('carefulHint')} type="select"
      options=${['off', 'new_number', ...(typeof settings.careful === 'object' ? ['own'] : [])].map((one) => [one, t(`careful.${one}`)])} />
    ${networkBy(channel.network)?.pairing.length > 0 && html`<${Field} form=${form} name="settings.proxy" label=${t('proxy')}
      hint=${t('proxyHint')} inputmode="url" autocomplete="off" spellcheck="false" maxlength="2000"
      placeholder="socks5://user:password@proxy.example.com:1080" />`}
    ${hasAccount && html`<${OfficialFields} form=${form} />`}
    ${!hasAccount && html`<${Field} form=${form} name="settings.calls.reject" label=${t('rejectCalls')}
      hint=${t('rejectCallsHint')} type="checkbox" />`}
    ${form.values['settings.calls.reject'] && html`<${Field} form=${form} name="settings.calls.text" label=${t('callText')}
      hint=${t('callTextHint')} maxlength="4096" autocomplete="off" />`}
    <${Field} form=${form} name="settings.opt_out.words" label=${t('optOut')} hint=${t('optOutHint')} autocomplete="off" />
    ${form.values['settings.opt_out.words'].trim() && html`<${Field} form=${form} name="settings.opt_out.reply" label=${t('optOutReply')}
      hint=${t('optOutReplyHint')} maxlength="4096" autocomplete="off" />`}
    <div class="row"><${Submit} need="operator" form=${form}>${core('save')}<//>
      <${AsCode} request=${{ method: 'PATCH', path: `/api/manage/channels/${channel.code}`, body: wanted(form.values, settings) }} /></div>
  <//><//>`;
}

const OfficialFields = ({ form }) => html`
  <${Field} form=${form} name="settings.cloud.outside_window.template" label=${t('outsideWindow')} hint=${t('outsideWindowHint')}
    autocomplete="off" spellcheck="false" />
  ${form.values['settings.cloud.outside_window.template'].trim() && html`<${Field} form=${form}
    name="settings.cloud.outside_window.language" label=${t('outsideLanguage')} required placeholder="en_US"
    autocomplete="off" spellcheck="false" />`}
  <${Field} form=${form} name="settings.cloud.on_unknown" label=${t('unknownAction')} hint=${t('unknownActionHint')} type="select"
    options=${['resend', 'fail'].map((one) => [one, t(`unknownAction.${one}`)])} />
  <${Field} form=${form} name="settings.cloud.mark_read" label=${t('markRead')} hint=${t('markReadHint')} type="checkbox" />`;

// What has no field goes along, as it does in wanted.
function official(values, before) {
  const value = (name) => values[`settings.cloud.${name}`];
  const template = value('outside_window.template').trim();
  const cloud = { ...before, on_unknown: value('on_unknown') === 'fail' ? 'fail' : undefined, mark_read: value('mark_read') || undefined,
    outside_window: template ? { template, language: value('outside_window.language').trim() } : undefined };
  return Object.values(cloud).some((one) => one !== undefined) ? { cloud } : {};
}

const fields = ['pace', 'ttl', 'retention', 'allow_only', 'careful', 'calls', 'opt_out', 'proxy', 'cloud'];

// Settings are sent as a whole: a missing one is reset to its default, so those without a field go along. The server validates them.
function wanted(values, settings) {
  const amount = (key, unit, by = 1) => { const text = values[key].trim().replace(',', '.'); return text &&
    { [key.slice(9)]: Number.isFinite(text * by) ? `${text * by}${unit}` : text }; };
  const words = toLabels(values['settings.opt_out.words']), reply = values['settings.opt_out.reply'].trim();
  const text = values['settings.calls.text'].trim(), proxy = values['settings.proxy'].trim(), careful = values['settings.careful'];
  return {
    name: values.name,
    labels: toLabels(values.labels),
    settings: { ...Object.fromEntries(Object.entries(settings).filter(([name]) => !fields.includes(name))),
      ...amount('settings.pace', 's'), ...amount('settings.ttl', 's', 3600), ...amount('settings.retention', 's'),
      ...(values.who === 'only' && { allow_only: numbers(values['settings.allow_only']).map(contact) }),
      ...(values['settings.calls.reject'] && { calls: { reject: true, ...(text && { text }) } }),
      ...(careful !== 'off' && { careful: careful === 'own' ? settings.careful : careful }),
      ...official(values, settings.cloud), ...(proxy && { proxy }),
      ...(words.length > 0 && { opt_out: { words, ...(reply && { reply }) } }) },
  };
}

// A number becomes a contact id. The server rejects anything else.
const contact = (text) => (/^[\d\s+().-]+$/.test(text) ? `${text.replace(/\D/g, '')}@c.us` : text);
