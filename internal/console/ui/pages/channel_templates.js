// The message templates of a channel: how their review went, and new ones.
import { html } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { hasRole, networkBy, now } from '../state.js';
import { texts, num } from '../i18n.js';
import { Empty, Facts } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { confirm, Dialog } from '../parts/dialog.js';
import { Drawer, useDrawer } from '../parts/drawer.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { SearchWord } from '../parts/search.js';
import { Badge } from '../parts/status.js';
import { toast } from '../parts/toast.js';

const t = texts('templates');
const core = texts('core');

const every = 60_000; // a review may take days
const statuses = ['APPROVED', 'PENDING', 'REJECTED', 'PAUSED', 'DISABLED'];
const tones = { APPROVED: 'good', REJECTED: 'bad', DISABLED: 'bad' };
const statusName = (status) => (t.has(`status.${status}`) ? t(`status.${status}`) : status);
const toKey = (row) => `${row.name}.${row.language}`;

/** The names of what changes in a text, each once. */
const gaps = (text) => [...new Set([...text.matchAll(/\{\{\s*([a-z0-9_]+)\s*\}\}/g)].map(([, name]) => name))];

export function Templates({ channel: { code, network, status: connected } }) {
  const { status = '', q = '' } = query.value;
  const load = useLoad(async () => (await api.get('/templates', { channel: code })).data,
    [code, connected, now.value - (now.value % every)]);
  const all = load.data;
  const rows = all?.filter((row) => (!status || row.status === status) &&
    `${row.name} ${row.body}`.toLowerCase().includes(q.toLowerCase()));
  const path = `/channels/${code}/templates`;
  const drawer = useDrawer(rows, toKey);
  const create = html`<${Button} need="operator" kind="primary" icon="plus" onClick=${() => setQuery({ new: 1 })}>${t('new')}<//>`;
  const remove = async ({ name }) => {
    if (!await confirm({ title: t('deleteTitle', { name }), text: t('deleteText'), action: t('delete'), danger: true })) return;
    await api.del(`/templates/${name}`, { channel: code });
    toast(t('deleted'), { kind: 'good' });
    drawer.close();
    await load.reload();
  };
  return html`
    <div class="spread template-filters">
      <div class="chips" role="group" aria-label=${t('byStatus')}>${['', ...new Set(all?.map((row) => row.status))].map((one) => html`
        <button key=${one} type="button" class="chip" aria-pressed=${String(one === status)} onClick=${() => setQuery({ status: one })}>
          ${one ? statusName(one) : t('all')}${' '}<span class="count">
          ${num(all?.filter((row) => !one || row.status === one).length ?? 0)}</span></button>`)}</div>
      <div class="row"><${SearchWord} name="q" label=${t('search')} data-search />
        <${AsCode} request=${{ path: '/api/templates', headers: { 'X-Channel': code } }} />${create}</div>
    </div>
    <${Table} label=${t('title')} load=${load} rows=${rows} rowKey=${toKey} drawer=${drawer} columns=${columns}
      rowHref=${(row) => href(path, { status, q, ...drawer.at(toKey(row)) })}
      empty=${all?.length ? html`<${Empty} icon="filter" title=${t('noMatch')}><${Button} href=${href(path)}>${core('clearFilter')}<//><//>`
        : html`<${Empty} icon="messages" title=${t('none')} text=${t('noneText')}>${create}<//>`} />
    <${Drawer} drawer=${drawer} title=${drawer.row?.name}>
      ${drawer.row && html`<${Detail} row=${drawer.row} code=${code} remove=${remove} />`}<//>
    ${query.value.new && hasRole('operator') && html`<${NewTemplate} code=${code} simulated=${networkBy(network)?.simulated}
      onDone=${load.reload} />`}`;
}

const Review = ({ of: { status } }) => html`<${Badge} tone=${tones[status] || 'warn'}>${statusName(status)}<//>`;

const columns = [
  { id: 'name', get label() { return t('name'); }, cell: (row) => html`<span class="mono clip">${row.name}</span>`,
    sort: toKey, card: 'title' },
  { id: 'language', get label() { return t('language'); }, cell: (row) => row.language, sort: (row) => row.language, card: 'when' },
  { id: 'status', get label() { return t('status'); }, cell: (row) => html`<${Review} of=${row} />`, sort: (row) => row.status,
    card: 'status' },
  { id: 'category', get label() { return t('category'); }, cell: (row) => categoryName(row.category), sort: (row) => row.category,
    wide: true },
  { id: 'body', get label() { return t('body'); }, cell: (row) => html`<bdi class="clip">${row.body}</bdi>`, card: 'text',
    class: 'template-body' },
];

const categoryName = (category) => (t.has(`category.${category}`) ? t(`category.${category}`) : category);

function Detail({ row, code, remove }) {
  const names = gaps(row.body);
  const named = names.some((name) => /\D/.test(name));
  const parameters = named ? Object.fromEntries(names.map((name) => [name, '…'])) : names.map(() => '…');
  const said = (text) => text && html`<bdi class="body">${text}</bdi>`;
  return html`<${Facts} rows=${[
    [t('status'), html`<${Review} of=${row} />`], [t('reason'), row.reason && html`<bdi lang="en">${row.reason}</bdi>`],
    [t('language'), row.language], [t('category'), categoryName(row.category)], [t('header'), said(row.header)],
    [t('body'), said(row.body)], [t('footer'), said(row.footer)]]} />
    <div class="row"><${AsCode} label=${t('send')} request=${{ method: 'POST', path: '/api/send-message/template',
      headers: { 'X-Channel': code },
      body: { contact_id: '6281234567890@c.us', name: row.name, language: row.language, ...(names.length && { parameters }) } }} />
      <${Button} need="operator" kind="danger" icon="trash" onClick=${() => remove(row)}>${t('delete')}<//></div>`;
}

const wanted = ({ name, language, category, header, body, footer, status, ...values }) => ({
  name, language, category, body, ...(header && { header }), ...(footer && { footer }), ...(status && { status }),
  ...(gaps(body).length && { examples: gaps(body).map((gap) => values[`example.${gap}`] || '') }) });

function NewTemplate({ code, simulated, onDone }) {
  const close = () => setQuery({ new: null });
  const first = { name: '', language: '', category: 'UTILITY', header: '', body: '', footer: '', ...(simulated && { status: 'APPROVED' }) };
  const form = useForm(first, async (values) => {
    const { data } = await api.post('/templates', wanted(values), { channel: code });
    toast(t('created', { status: statusName(data.status) }), { kind: 'good' });
    await onDone();
    close();
  });
  return html`<${Dialog} open title=${t('new')} onClose=${close}><${Form} form=${form}>
    <div class="grid2"><${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} required autofocus autocomplete="off"
        autocapitalize="off" spellcheck=${false} class="mono" />
      <${Field} form=${form} name="language" label=${t('language')} hint=${t('languageHint')} required maxlength="15" autocomplete="off"
        autocapitalize="off" spellcheck=${false} class="mono" /></div>
    <${Field} form=${form} name="category" label=${t('category')} type="select"
      options=${['UTILITY', 'MARKETING'].map((one) => [one, categoryName(one)])} />
    <${Field} form=${form} name="header" label=${t('header')} maxlength="60" autocomplete="off" />
    <${Field} form=${form} name="body" label=${t('body')} hint=${t('bodyHint', { gap: '{{1}}' })} type="textarea" required
      maxlength="1024" />
    ${gaps(form.values.body).map((gap, i) => html`<${Field} key=${gap} form=${form} name=${`example.${gap}`} path=${`examples.${i}`}
      label=${t('example', { gap: `{{${gap}}}` })} hint=${i ? '' : t('exampleHint')} required autocomplete="off" />`)}
    <${Field} form=${form} name="footer" label=${t('footer')} maxlength="60" autocomplete="off" />
    ${simulated && html`<${Field} form=${form} name="status" label=${t('status')} hint=${t('statusHint')} type="select"
      options=${statuses.map((one) => [one, statusName(one)])} />`}
    <div class="row"><${Submit} form=${form}>${t('create')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/templates', headers: { 'X-Channel': code }, body: wanted(form.values) }} /></div>
  <//><//>`;
}
