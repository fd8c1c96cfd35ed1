// What programs call this server with: which tokens there are, what each may do, and who uses it.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { selected, now, totals, formChannel, server, hasRole, roles } from '../state.js';
import { useKeys } from '../keys.js';
import { texts, duration } from '../i18n.js';
import { Head, Empty, Facts, Note } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { confirm, Dialog } from '../parts/dialog.js';
import { useDrawer, Drawer } from '../parts/drawer.js';
import { toast } from '../parts/toast.js';
import { Icon } from '../parts/icon.js';
import { Badge } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { tick } from '../checklist.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { ChannelField } from '../parts/channel_field.js';

const t = texts('tokens');
const core = texts('core');

const every = 30_000; // how often it is asked who used what; the server writes it down once a minute
const dayLong = 86_400_000;
const unusedAfter = 30 * dayLong;
const soonBefore = 7 * dayLong;

const tones = { channel: '', global: 'accent', admin: 'warn' };

/** The state of a token: revoked, expired or active. */
const toState = (token) => (token.revoked_at ? 'revoked' : token.expires_at && Date.parse(token.expires_at) <= now.value
  ? 'expired' : 'works');
const works = (token) => toState(token) === 'works';

/** What somebody should know of a token that works: of a development server and so refused here, unused, or soon to end. */
function toHint(token) {
  if (!works(token)) return '';
  if (token.dev && server.value?.mode === 'serve') return 'dev';
  if (token.expires_at && Date.parse(token.expires_at) - now.value < soonBefore) return 'soon';
  return now.value - Date.parse(token.last_used_at || token.created_at) > unusedAfter ? 'unused' : '';
}

async function revoke(token, done) {
  const name = token.name || token.id;
  if (!await confirm({ title: t('revokeTitle', { name }), text: t('revokeText'), action: t('revoke'), danger: true })) return;
  await api.del(`/manage/tokens/${token.id}`);
  toast(t('revoked', { name }), { kind: 'good' });
  await done();
}

export default function Page() {
  const ended = query.value.show === 'ended';
  const load = useLoad(() => api.get('/manage/tokens'), [now.value - (now.value % every)]);
  const all = load.data?.data.filter((token) => !selected.value || !token.channel || token.channel === selected.value);
  const working = all?.filter(works);
  const words = (query.value.q || '').trim().toLowerCase();
  const rows = (ended ? all?.filter((token) => !works(token)) : working)?.filter((token) => !words || toText(token).includes(words));
  const drawer = useDrawer(all, (token) => token.id);
  const create = () => setQuery({ new: '1' });
  useKeys([['n', t('create'), create, 'owner']]);
  const open = drawer.row;
  return html`
    <${Head} title=${core('page.tokens')} lead=${working && lead(working)} actions=${html`
      <${AsCode} request=${{ path: '/api/manage/tokens' }} /><${Button} need="owner" kind="primary" icon="plus" onClick=${create}>
        ${t('create')}<//>`} />
    ${all?.length > 0 && html`<nav class="chips" aria-label=${t('which')}>
      ${[['', working.length], ['ended', all.length - working.length]].map(([show, n]) => html`
      <a key=${show} class="chip" href=${href('/tokens', { show, q: query.value.q })}
        aria-current=${show === (ended ? 'ended' : '') ? 'page' : undefined}>${t(show || 'working')} <span class="count">${n}</span></a>`)}
      <label class="find"><${Icon} name="search" size=${16} /><input type="search" data-search aria-label=${t('search')}
        placeholder=${t('search')} value=${query.value.q || ''} maxlength="100"
        onInput=${(event) => setQuery({ q: event.target.value }, { replace: true })} /></label></nav>`}
    <${Table} label=${core('page.tokens')} load=${load} rows=${rows} rowKey=${(token) => token.id} drawer=${drawer}
      columns=${columns(load.reload)}
      rowHref=${(token) => href('/tokens', { show: ended ? 'ended' : null, q: query.value.q, ...drawer.at(token.id) })}
        empty=${words ? html`<${Empty} icon="tokens" title=${t('noMatch')}><${Button} onClick=${() => setQuery({ q: null })}>
          ${core('clearFilter')}<//><//>` : html`<${None} ended=${ended} create=${create} />`} />
    <${Drawer} drawer=${drawer} title=${open?.name || drawer.id}>${open ? html`<${Details} token=${open} reload=${load.reload} />`
      : all && html`<p>${t('gone')}</p>`}<//>
    <${NewToken} onDone=${load.reload} />`;
}

const toText = ({ id, name, kind, role, channel, last_used_from: from, user_agent: agent }) =>
  [id, name, kind, role, channel, from, agent].filter(Boolean).join(' ').toLowerCase();

function lead(working) {
  const count = (hint) => working.filter((token) => toHint(token) === hint).length;
  const [unused, soon] = [count('unused'), count('soon')];
  return [working.length ? t('someWork', { n: working.length }) : t('none'), unused && t('someUnused', { n: unused }),
    soon && t('someSoon', { n: soon })].filter(Boolean).join(' ');
}

const None = ({ ended, create }) => (ended ? html`<${Empty} icon="tokens" title=${t('noneEnded')} />`
  : html`<${Empty} icon="tokens" title=${t('none')} text=${t('noneText')}>
    <${Button} need="owner" kind="primary" icon="plus" onClick=${create}>${t('createChannel')}<//><//>`);

const Kind = ({ token: { kind, role } }) =>
  html`<${Badge} tone=${tones[kind]}>${role ? t('kindRole', { role: core(`role.${role}`) }) : t(`kind.${kind}`)}<//>`;
const can = ({ kind, channel, role }) => (channel ? t('canOne', { channel }) : role ? core(`roleCan.${role}`) : t(`can.${kind}`));
const never = () => html`<span class="muted">${t('never')}</span>`;

function Ends({ token }) {
  const state = toState(token);
  if (state === 'revoked') return html`<span class="state bad">${t('revokedAt')} <${Time} at=${token.revoked_at} /></span>`;
  if (state === 'expired') return html`<span class="state bad">${t('expiredAt')} <${Time} at=${token.expires_at} /></span>`;
  return token.expires_at ? html`<${Time} at=${token.expires_at} />` : never();
}

const columns = (reload) => [
  { id: 'name', label: t('name'), cell: (token) => html`<bdi class="clip" title=${token.name || undefined}>
    ${token.name || html`<span class="muted mono" title=${token.id}>${token.id.slice(0, 10)}…</span>`}</bdi>`, sort: (token) =>
    token.name || token.id, card: 'title', class: 'name-cell' },
  { id: 'kind', label: t('kind'), cell: (token) => html`<${Kind} token=${token} />`, sort: (token) => token.kind + (token.role || ''),
    card: 'status' },
  { id: 'can', label: t('can'), cell: (token) => html`<span class="muted">${can(token)}</span>`, wide: true, card: 'text' },
  { id: 'channel', label: core('page.channel'), cell: (token) =>
    (token.channel ? html`<span class="clip" title=${token.channel}>${token.channel}</span>`
      : html`<span class="muted">${t(token.kind === 'global' ? 'every' : 'noChannel')}</span>`), sort: (token) => token.channel,
    class: 'code-cell' },
  { id: 'made', label: t('created'), cell: (token) => html`<${Time} at=${token.created_at} />`, sort: (token) => token.created_at,
    wide: true },
  { id: 'used', label: t('used'), cell: (token) => html`<span class="only-small">${t('used')} </span>
    <span title=${[token.last_used_from, token.user_agent].filter(Boolean).join(' · ') || undefined}>
    ${token.last_used_at ? html`<${Time} at=${token.last_used_at} />` : never()}</span>
      ${['unused', 'dev'].includes(toHint(token)) && html` <${Badge} tone="warn">${t(toHint(token))}<//>`}`, sort: (token) =>
        token.last_used_at, card: 'when' },
  { id: 'ends', label: t('ends'), cell: (token) =>
    html`<${Ends} token=${token} />${toHint(token) === 'soon' && html` <${Badge} tone="warn">${t('soon')}<//>`}`, sort: (token) =>
    token.revoked_at || token.expires_at || '9' },
  { id: 'act', label: html`<span class="sr">${t('revoke')}</span>`, align: 'end', cell: (token) => works(token) &&
    html`<${Button} need="owner" small kind="quiet" aria-label=${`${t('revoke')} ${token.name || token.id}`}
      onClick=${() => revoke(token, reload)}>${t('revoke')}<//>` },
];

function Details({ token, reload }) {
  const hint = toHint(token);
  return html`
    ${hint && html`<${Note} kind="warn">${t(`hint.${hint}`)}<//>`}
    <${Facts} rows=${[
      ['ID', html`<span class="row"><code>${token.id}</code><${Copy} text=${token.id} what="id" /></span>`],
      [t('kind'), html`<${Kind} token=${token} /> ${can(token)}`],
      [core('page.channel'), token.channel && html`<a href=${href(`/channels/${token.channel}`)}>${token.channel}</a>`],
      [t('created'), html`<${Time} at=${token.created_at} ago />`],
      [t('used'), token.last_used_at ? html`<${Time} at=${token.last_used_at} ago />` : never()],
      [t('from'), token.last_used_from],
      [t('client'), token.user_agent && html`<bdi>${token.user_agent}</bdi>`],
      [t('ends'), html`<${Ends} token=${token} />`],
    ]} />
    ${token.role && works(token) && html`<${RolePicker} key=${token.id + token.role} token=${token} reload=${reload} />`}
    ${works(token) && html`<div class="row"><${Button} need="owner" kind="danger" icon="trash" onClick=${() => revoke(token, reload)}>
      ${t('revoke')}<//>
      <${AsCode} request=${{ method: 'DELETE', path: `/api/manage/tokens/${token.id}` }} /></div><p class="hint">${t('within')}</p>`}`;
}

/** Another role for an admin token. Console sessions that it made end. */
function RolePicker({ token, reload }) {
  const form = useForm({ role: token.role }, async ({ role }) => {
    await api.patch(`/manage/tokens/${token.id}`, { role });
    toast(t('roleChanged', { role: core(`role.${role}`) }), { kind: 'good' });
    await reload();
  });
  if (!hasRole('owner')) return null;
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="role" label=${t('role')} hint=${t('roleHint')} type="select" options=${roleOptions()} />
    <div class="row"><${Submit} form=${form} kind="" disabled=${form.values.role === token.role}>${t('changeRole')}<//>
      <${AsCode} request=${{ method: 'PATCH', path: `/api/manage/tokens/${token.id}`, body: form.values }} /></div>
  <//>`;
}

const roleOptions = () => roles.map((role) => [role, `${core(`role.${role}`)}: ${core(`roleCan.${role}`)}`]);

// A new token: what it may do, and its text, which is shown this once.

const lives = [30, 90, 365]; // days

/** The dialog that ?new= opens. */
export function NewToken({ onDone }) {
  const [made, setMade] = useState(null);
  const [taken, setTaken] = useState(false);
  const close = async () => {
    // What is lost here cannot be shown again.
    if (made && !taken && !await confirm({ title: t('leave'), text: t('leaveText'), action: t('leaveNow'), danger: true })) return;
    setMade(null);
    setTaken(false);
    setQuery({ new: null });
  };
  const done = (token) => { setMade(token); tick('token'); onDone(); };
  return html`<${Dialog} wide=${Boolean(made)} open=${Boolean(query.value.new)} title=${made ? t('ready', { name: made.name || made.id })
    : t('create')} onClose=${close}
    foot=${made && html`<${Button} kind="primary" onClick=${close}>${core('close')}<//>`}>
    ${made ? html`<${Once} token=${made} onTaken=${() => setTaken(true)} />` : html`<${NewForm} onDone=${done} />`}
  <//>`;
}

const wanted = ({ name, kind, channel, role, days }) => ({
  kind, ...(name && { name }), ...(kind === 'channel' && { channel }), ...(kind === 'admin' && { role }),
  ...(days && { expires_at: new Date(Date.now() + days * dayLong).toISOString().replace(/\.\d+/, '') }),
});

function NewForm({ onDone }) {
  const some = totals.value?.all !== 0;
  const form = useForm({ name: '', kind: some ? 'channel' : 'admin', channel: formChannel.value?.code || '', role: 'viewer', days: '' },
    async (values) => {
    if (values.kind === 'channel' && !values.channel) throw { errors: { channel: [core('picker.choose')] } };
    const { data } = await api.post('/manage/tokens', wanted(values));
    onDone(data);
  });
  const { kind } = form.values;
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('name')} hint=${t('nameHint')} autofocus autocomplete="off" maxlength="100" />
    <${Field} form=${form} name="kind" label=${t('kind')} type="radio"
      options=${['channel', 'global', 'admin'].filter((one) => one !== 'channel' || some)
        .map((one) => [one, html`<b>${t(`kind.${one}`)}</b> <span class="muted">${t(`can.${one}`)}</span>`])} />
    ${kind === 'channel' && html`<${ChannelField} form=${form} />`}
    ${kind === 'admin' && html`<${Field} form=${form} name="role" label=${t('role')} type="select" options=${roleOptions()} />`}
    <${Field} form=${form} name="days" path="expires_at" label=${t('ends')} type="select"
      options=${[['', t('never')], ...lives.map((days) => [String(days), t('after', { time: duration(days * dayLong) })])]} />
    ${kind === 'admin' && form.values.role === 'owner' && html`<${Note} kind="warn">${t('adminHint')}<//>`}
    <div class="row"><${Submit} need="owner" form=${form}>${t('create')}<//>
      <${AsCode} request=${{ method: 'POST', path: '/api/manage/tokens', body: wanted(form.values) }} /></div>
  <//>`;
}

const variables = { channel: 'PARLEY_TOKEN', global: 'PARLEY_GLOBAL_TOKEN', admin: 'PARLEY_ADMIN_TOKEN' };

function Once({ token: { token, kind }, onTaken }) {
  const url = server.value?.url || location.origin;
  const name = variables[kind];
  const path = kind === 'admin' ? '/api/manage/server' : '/api/channel/health';
  const named = kind === 'global' && formChannel.value ? ` -H 'X-Channel: ${formChannel.value.code}'` : '';
  const ways = {
    token,
    env: `PARLEY_URL=${url}\n${name}=${token}`,
    curl: `curl -sS '${url}${path}'${named} -H 'Authorization: Bearer ${token}'`,
    github: `gh secret set ${name} --body '${token}'`,
  };
  return html`<div class="stack" onClick=${(event) => event.target.closest('button') && onTaken()} onCopy=${onTaken}>
    <${Note} kind="warn" title=${t('once')}>${t('onceText')}<//>
    ${Object.entries(ways).map(([id, text]) => html`<section key=${id} class="stack"><h3>${t(`way.${id}`)}</h3>
      <${Code} wrap text=${text} what=${t(`way.${id}`)} hide=${id === 'token' ? '' : token} /></section>`)}
  </div>`;
}
