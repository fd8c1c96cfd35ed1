// Alert rules: what they watch, whom they notify, and what they found.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { query, setQuery } from '../router.js';
import { now, hasRole } from '../state.js';
import { texts } from '../i18n.js';
import { Head, Empty, Note } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { Dialog, confirm } from '../parts/dialog.js';
import { toast } from '../parts/toast.js';
import { Badge } from '../parts/status.js';
import { Time, Said } from '../parts/time.js';
import { phone, mask } from '../parts/who.js';
import { useForm, Form, Field, Submit, toContact } from '../parts/form.js';
import { ChannelField } from '../parts/channel_field.js';

const t = texts('alerts');
const core = texts('core');

const kinds = ['channel_logged_out', 'channel_restricted', 'failing_sends', 'failing_webhook', 'disk', 'client_old',
  'account_problem'];

// ofServer are the kinds that are not about a channel.
const ofServer = ['disk', 'client_old'];
const every = 30_000;

export default function Page() {
  const load = useLoad(() => api.get('/manage/alerts', { query: { limit: 100 } }), [now.value - (now.value % every)], { on: ['channel.'] });
  const { rules, alerts } = load.data?.data || {};
  const create = () => setQuery({ new: '1' });
  const close = () => setQuery({ new: null, edit: null });
  const edited = query.value.edit && rules?.find((rule) => rule.id === query.value.edit);
  return html`
    <${Head} title=${core('page.alerts')} lead=${t('lead')} actions=${html`<${AsCode} request=${{ path: '/api/manage/alerts' }} />
      <${Button} need="operator" kind="primary" icon="plus" onClick=${create}>${t('new')}<//>`} />
    <h2>${t('rules')}</h2>
    <div class="rules"><${Table} label=${t('rules')} load=${load} rows=${rules} rowKey=${(rule) => rule.id}
      columns=${ruleColumns(load.reload)} empty=${html`<${Empty} icon="bell" title=${t('noRules')} text=${t('noRulesText')}>
        <${Button} need="operator" kind="primary" icon="plus" onClick=${create}>${t('new')}<//><//>`} /></div>
    <h2>${t('recent')}</h2>
    <${Table} label=${t('recent')} load=${load} rows=${alerts} rowKey=${(alert) => alert.id} columns=${alertColumns}
      empty=${html`<${Empty} icon="good" title=${t('noAlerts')} />`} />
    ${query.value.new && html`<${RuleForm} onDone=${load.reload} onClose=${close} />`}
    ${edited && html`<${RuleForm} key=${edited.id} rule=${edited} onDone=${load.reload} onClose=${close} />`}`;
}

const toName = (rule) => rule.name || t(`kind.${rule.kind}`);
const toHour = ({ from, to, zone }) => `${from}–${to} ${zone}`;

function ruleColumns(reload) {
  const test = async (rule) => {
    const answer = await api.post(`/manage/alerts/${rule.id}/test`);
    toast(answer.success ? t('tested') : answer.message, { kind: answer.success ? 'good' : 'bad' });
  };
  const remove = async (rule) => {
    if (!await confirm({ title: t('deleteTitle', { name: toName(rule) }), text: t('deleteText'), action: t('delete'),
      danger: true })) return;
    await api.del(`/manage/alerts/${rule.id}`);
    toast(t('deleted'), { kind: 'good' });
    await reload();
  };
  return [
    { id: 'name', label: t('name'), cell: (rule) => html`<bdi class="clip">${toName(rule)}</bdi>
      ${!rule.enabled && html` <${Badge}>${t('off')}<//>`}`, card: 'title' },
    { id: 'kind', label: t('kind'), cell: (rule) => html`${t(`kind.${rule.kind}`)} <span class="muted">
      ${rule.channel || (ofServer.includes(rule.kind) ? '' : t('every'))}</span>`, card: 'text' },
    { id: 'notifies', label: t('notifies'), cell: (rule) => html`<bdi class="clip" title=${rule.url || undefined}>
      ${rule.url || t('through', { who: mask(phone(rule.contact_id)), channel: rule.via })}</bdi>`, card: 'meta' },
    { id: 'quiet', label: t('quiet'), cell: (rule) => (rule.quiet ? toHour(rule.quiet) : ''), wide: true },
    ...(hasRole('operator') ? [{ id: 'act', label: html`<span class="sr">${t('test')}</span>`, align: 'end', card: 'status',
      cell: (rule) => html`<span class="row nowrap end">
      <${Button} small kind="quiet" aria-label=${`${t('test')}: ${toName(rule)}`} onClick=${() => test(rule)}>${t('test')}<//>
      <${Button} small kind="quiet" aria-label=${`${t('edit')}: ${toName(rule)}`} onClick=${() => setQuery({ edit: rule.id })}>
        ${t('edit')}<//>
      <${Button} small kind="quiet" aria-label=${t('deleteTitle', { name: toName(rule) })} onClick=${() => remove(rule)}>${t('delete')}<//>
        </span>` }] : []),
  ];
}

const alertColumns = [
  { id: 'raised', get label() { return t('raised'); }, cell: (alert) => html`<${Time} at=${alert.raised_at} />`, card: 'when' },
  { id: 'state', get label() { return t('resolved'); }, cell: (alert) =>
    (alert.resolved_at ? html`<${Badge} tone="good">${t('over')}<//> <${Time} at=${alert.resolved_at} />`
      : html`<${Badge} tone="bad">${t('open')}<//>`), card: 'status' },
  { id: 'what', get label() { return t('what'); }, cell: (alert) => html`<${Said} text=${mask(alert.sentence)} />`, card: 'title' },
  { id: 'notice', get label() { return t('notice'); }, cell: (alert) =>
    (alert.problem ? html`<bdi lang="en" class="clip" title=${alert.problem}>${alert.problem}</bdi>`
      : t(alert.notified_at ? 'sent' : 'notSent')), card: 'meta' },
];

const here = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

function wanted({ kind, name, channel, by, url, via, contact, share, minutes, quiet, from, to, zone, enabled }) {
  return {
    kind,
    enabled,
    ...(name.trim() && { name: name.trim() }),
    ...(channel && !ofServer.includes(kind) && { channel }),
    ...(kind === 'failing_sends' && { share, window_minutes: minutes }),
    ...(by === 'url' ? { url } : { via, contact_id: toContact(contact) }),
    ...(quiet && { quiet: { from, to, zone } }),
  };
}

// What the form begins with.
const toValues = (rule) => ({
  kind: rule?.kind || kinds[0], name: rule?.name || '', channel: rule?.channel || '', by: rule?.via ? 'message' : 'url',
    url: rule?.url || '', via: rule?.via || '',
  contact: rule?.contact_id ? phone(rule.contact_id) : '', share: rule?.share ?? 20, minutes: rule?.window_minutes ?? 15,
  quiet: Boolean(rule?.quiet), from: rule?.quiet?.from || '22:00', to: rule?.quiet?.to || '07:00', zone: rule?.quiet?.zone || here,
    enabled: rule?.enabled ?? true,
});

/** Makes a rule, or replaces one. What it notifies by cannot change. */
function RuleForm({ rule, onDone, onClose }) {
  const [secret, setSecret] = useState('');
  const path = `/manage/alerts${rule ? `/${rule.id}` : ''}`;
  const form = useForm(toValues(rule), async (values) => {
    const { data } = await (rule ? api.put : api.post)(path, wanted(values));
    toast(t(rule ? 'changed' : 'created'), { kind: 'good' });
    await onDone();
    if (data.secret) setSecret(data.secret);
    else onClose();
  });
  const { kind, by, quiet } = form.values;
  if (secret) return html`<${Dialog} open title=${t('secret')} onClose=${onClose}
    foot=${html`<${Button} kind="primary" onClick=${onClose}>${core('close')}<//>`}><${Note}>${t('secretText')}<//>
    <${Code} text=${secret} what=${t('secret')} hide=${secret} /><//>`;
  return html`<${Dialog} open title=${t(rule ? 'editTitle' : 'new')} onClose=${onClose}><${Form} form=${form}>
    <${Field} form=${form} name="kind" label=${t('kind')} type="select" options=${kinds.map((one) => [one, t(`kind.${one}`)])} autofocus />
    ${!ofServer.includes(kind) && html`<${ChannelField} form=${form} name="channel" label=${t('channel')} none=${t('every')} />`}
    ${kind === 'failing_sends' && html`<div class="grid2"><${Field} form=${form} name="share" label=${t('share')} type="number" min="1"
      max="100" /><${Field} form=${form} name="minutes" path="window_minutes" label=${t('window')} type="number" min="5"
      max="1440" /></div>`}
    <${Field} form=${form} name="name" label=${t('name')} maxlength="60" />
    ${!rule && html`<${Field} form=${form} name="by" label=${t('notifies')} type="radio"
      options=${[['url', t('byURL')], ['message', t('byMessage')]]} />`}
    ${by === 'url' ? html`<${Field} form=${form} name="url" label=${t('url')} type="url" required />`
      : html`<${ChannelField} form=${form} name="via" label=${t('via')} hint=${t('viaHint')} />
        <${Field} form=${form} name="contact" path="contact_id" label=${t('contact')} type="tel" required />`}
    <${Field} form=${form} name="quiet" label=${t('quiet')} hint=${t('quietHint')} type="checkbox" />
    ${quiet && html`<div class="grid3"><${Field} form=${form} name="from" path="quiet.from" label=${t('quietFrom')} type="time" />
      <${Field} form=${form} name="to" path="quiet.to" label=${t('quietTo')} type="time" />
      <${Field} form=${form} name="zone" path="quiet.zone" label=${t('zone')} /></div>`}
    ${rule && html`<${Field} form=${form} name="enabled" label=${t('enabled')} type="checkbox" />`}
    <div class="row"><${Submit} need="operator" form=${form}>${rule ? core('save') : t('create')}<//></div>
  <//><//>`;
}
