// Who may use the console and what was done: the audit log and the console sessions.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { now, hasRole } from '../state.js';
import { texts } from '../i18n.js';
import { Head, Empty, Facts } from '../parts/card.js';
import { Tabs } from '../parts/tabs.js';
import { Table } from '../parts/table.js';
import { SearchWord } from '../parts/search.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { confirm } from '../parts/dialog.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { toast } from '../parts/toast.js';
import { Badge } from '../parts/status.js';
import { Time } from '../parts/time.js';
import NotFound from './notfound.js';

const t = texts('access');
const core = texts('core');

const every = 30_000;
const perPage = 50;

export default function Page({ route }) {
  const { tab = '' } = route.params;
  if (tab && tab !== 'sessions') return html`<${NotFound} route=${route} />`;
  return html`
    <${Head} title=${core('page.access')} lead=${t(tab ? 'sessionsLead' : 'auditLead')}
      actions=${html`<${AsCode} request=${{ path: `/api/manage/${tab || 'audit'}` }} />`} />
    <${Tabs} label=${core('page.access')} current=${tab} tabs=${[
      { id: '', label: t('audit'), href: href('/access') },
      { id: 'sessions', label: t('sessions'), href: href('/access/sessions') },
    ]} />
    ${tab ? html`<${Sessions} />` : html`<${Audit} />`}`;
}

// The audit log: newest first, in pages.

const groups = ['channel', 'message', 'chat', 'group', 'contact', 'otp', 'webhook', 'delivery', 'alert', 'token', 'session', 'node',
  'server'];
const spans = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_592_000_000 };
const toAction = (action) => (t.has(`do.${action}`) ? t(`do.${action}`) : action);

function Audit() {
  const { group = '', actor = '', object = '', since = '' } = query.value;
  const about = JSON.stringify([group, actor, object, since]);
  const [pages, setPages] = useState({ about, n: 1 });
  const n = pages.about === about ? pages.n : 1;
  const load = useLoad(async () => {
    const asked = { action: group && `${group}.`, actor, object, since: spans[since] && new Date(Date.now() - spans[since]).toISOString() };
    const filter = Object.fromEntries(Object.entries(asked).filter(([, value]) => value));
    return api.list('/manage/audit', { ...filter, limit: perPage }, n);
  }, [about, n, now.value - (now.value % every)]);
  const rows = load.data?.rows;
  const drawer = useDrawer(rows, (row) => row.id);
  const pick = (name, all, label, words) =>
    html`<select class="pick-one" aria-label=${label} value=${query.value[name] || ''}
      onChange=${(event) => setQuery({ [name]: event.target.value || null })}>
    ${['', ...all].map((one) => html`<option key=${one} value=${one} selected=${one === (query.value[name] || '')}>${words(one)}
      </option>`)}</select>`;
  const filtered = group || actor || object || since;
  return html`
    <div class="row access-filters">
      ${pick('group', groups, t('what'), (one) => t(`group.${one || 'all'}`))}
      ${pick('since', Object.keys(spans), t('since'), (one) => t(`span.${one || 'all'}`))}
      <${SearchWord} name="actor" label=${t('actor')} data-search />
      <${SearchWord} name="object" label=${t('object')} />
    </div>
    <${Table} label=${t('audit')} load=${load} rows=${rows} rowKey=${(row) => row.id} drawer=${drawer} columns=${auditColumns}
      rowHref=${(row) => href('/access', { group, actor, object, since, ...drawer.at(row.id) })}
      empty=${filtered ? html`<${Empty} icon="filter" title=${t('noMatch')}><${Button} href=${href('/access')}>${core('clearFilter')}<//>
        <//>` : html`<${Empty} icon="access" title=${t('noAudit')} text=${t('noAuditText')} />`} />
    ${load.data?.total > rows?.length && html`<div class="row end"><span class="muted">
      ${t('shown', { n: rows.length, all: load.data.total })}</span>
      <${Button} busy=${load.loading && rows.length <= (n - 1) * perPage} onClick=${() => setPages({ about, n: n + 1 })}>
        ${t('older')}<//></div>`}
    <${Drawer} drawer=${drawer} title=${drawer.row ? toAction(drawer.row.action) : t('audit')}>
      ${drawer.row && html`<${Entry} row=${drawer.row} />`}<//>`;
}

// The server has a name for the local command line, in English.
const named = (name) => (name === 'command line' ? t('local') : name);
const toName = (row) => (row.actor_kind === 'local' ? t('local') : named(row.actor_name) || row.actor);
const toRole = (role) => (role ? core(`role.${role}`) : '');

const auditColumns = [
  { id: 'time', get label() { return t('time'); }, cell: (row) => html`<${Time} at=${row.at} />`, card: 'when' },
  { id: 'who', get label() { return t('who'); }, cell: (row) => html`<bdi class="clip" title=${row.actor}>${toName(row)}</bdi>`,
    card: 'text' },
  { id: 'role', get label() { return t('role'); }, cell: (row) => html`<span class="muted">${toRole(row.role)}</span>`, wide: true },
  { id: 'what', get label() { return t('what'); }, cell: (row) => toAction(row.action), card: 'title' },
  { id: 'object', get label() { return t('object'); }, cell: (row) => html`<bdi class="clip mono" title=${row.object || undefined}>
    ${row.object || ''}</bdi>`, card: 'meta' },
  { id: 'from', get label() { return t('from'); }, cell: (row) => html`<span class="mono-num">${row.address || ''}</span>`, wide: true },
];

const Entry = ({ row }) => html`
  <${Facts} rows=${[
    [t('time'), html`<${Time} at=${row.at} ago />`],
    [t('who'), html`<bdi>${toName(row)}</bdi> <${Badge}>${core(`role.${row.role}`)}<//>`],
    ['ID', row.actor_kind !== 'local' && html`<span class="row"><code>${row.actor}</code><${Copy} text=${row.actor} what="ID" /></span>`],
    [t('what'), html`${toAction(row.action)} <code>${row.action}</code>`],
    [t('object'), row.object && html`<span class="row"><code>${row.object}</code><${Copy} text=${row.object} what="ID" /></span>`],
    [t('from'), row.address],
    [t('request'), html`<code>${row.request_id}</code>`],
  ]} />
  ${[['before', row.before], ['after', row.after]].map(([name, value]) => value && html`<section key=${name}><h3>${t(name)}</h3>
    <${Code} wrap text=${JSON.stringify(value, null, 2)} what=${t(name)} /></section>`)}`;

// Console sessions: the reader's own, and for an owner all of them.

function Sessions() {
  const load = useLoad(() => api.get('/manage/sessions'), [now.value - (now.value % every)]);
  const rows = load.data?.data;
  const end = async (row) => {
    if (!await confirm({ title: t('endTitle', { name: named(row.name) || row.id }), text: t('endText'), action: t('end'),
      danger: true })) return;
    await api.del(`/manage/sessions/${row.id}`);
    toast(t('ended'), { kind: 'good' });
    await load.reload();
  };
  const endOthers = async () => {
    if (!await confirm({ title: t('endOthers'), text: t(hasRole('owner') ? 'endAllText' : 'endOwnText'), action: t('endOthers'),
      danger: true })) return;
    const { data } = await api.del('/manage/sessions');
    toast(t('endedSome', { n: data.ended }), { kind: 'good' });
    await load.reload();
  };
  return html`
    <div class="row end">${rows?.length > 1 && html`<${Button} kind="danger" icon="out" onClick=${endOthers}>${t('endOthers')}<//>`}</div>
    <${Table} label=${t('sessions')} load=${load} rows=${rows} rowKey=${(row) => row.id} columns=${sessionColumns(end)}
      empty=${html`<${Empty} icon="access" title=${t('noSessions')} />`} />`;
}

const sessionColumns = (end) => [
  { id: 'name', label: t('who'),
    cell: (row) => html`<bdi class="clip" title=${row.id}>
      ${named(row.name) || html`<span class="muted mono">${row.id.slice(0, 12)}…</span>`}</bdi>
      ${row.current && html` <${Badge} tone="accent">${t('current')}<//>`}`, sort: (row) => row.name || row.id, card: 'title' },
  { id: 'role', label: t('role'), cell: (row) => html`<${Badge}>${core(`role.${row.role}`)}<//>`, sort: (row) => row.role, card: 'status' },
  { id: 'used', label: t('used'), cell: (row) => html`<span class="only-small">${t('used')} </span><${Time} at=${row.last_used_at} />`,
    sort: (row) => row.last_used_at, card: 'when' },
  { id: 'from', label: t('from'), cell: (row) => html`<span class="mono-num">${row.last_used_from || ''}</span>`, card: 'text' },
  { id: 'browser', label: t('browser'), cell: (row) => html`<bdi class="clip muted" title=${row.user_agent || undefined}>
    ${row.user_agent || ''}</bdi>`, wide: true, class: 'name-cell' },
  { id: 'began', label: t('began'), cell: (row) => html`<${Time} at=${row.created_at} />`, sort: (row) => row.created_at, wide: true },
  { id: 'ends', label: t('ends'), cell: (row) => html`<${Time} at=${row.ends_at} />`, sort: (row) => row.ends_at },
  { id: 'act', label: html`<span class="sr">${t('end')}</span>`, align: 'end', card: 'meta', cell: (row) => !row.current &&
    html`<${Button} small kind="quiet" aria-label=${t('endTitle', { name: named(row.name) || row.id })} onClick=${() => end(row)}>
      ${t('end')}<//>` },
];
