// What needs somebody, then how it goes: the first page, and the one to keep open.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { server, channels, selected, now } from '../state.js';
import { steps, hidden, tickFrom } from '../checklist.js';
import { texts, num, percent, duration, bytes } from '../i18n.js';
import { Head, Card, Tile, Facts, Note, Loading, Failed } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Badge, urgency, channelTone } from '../parts/status.js';
import { Time } from '../parts/time.js';
import { Bars } from '../parts/chart.js';

const t = texts('overview');
const core = texts('core');

export default function Page() {
  const load = useLoad(async () => {
    const { data } = await api.get('/manage/overview');
    tickFrom(data);
    return data;
  }, [now.value - (now.value % 30_000)], { on: ['message.', 'channel.status', 'otp.'] });
  const data = load.data;
  // What is not of one channel alone concerns the picked one too.
  const needs = data?.needs.filter((need) => !selected.value || !need.channel || need.channel === selected.value);
  return html`
    <${Head} title=${core('page.overview')} lead=${needs && lead(needs)} actions=${html`<${Doctor} />`} />
    ${load.error && html`<${Failed} load=${load} />`}
    <${FirstRun} />
    ${!data && !load.error && html`<${Loading} rows=${5} />`}
    ${data && html`<${Needs} needs=${needs} />${selected.value && html`<p class="muted">${t('ofAll')}</p>`}<${Tiles} data=${data} /><${Chart} rows=${data.per_minute} />`}
    <${Server} />`;
}

function lead(needs) {
  const problems = needs.filter((need) => need.severity === 'problem').length;
  if (!needs.length) return t('allClear');
  return problems ? t('problems', { n: problems }) : t('warnings', { n: needs.length });
}

function Needs({ needs }) {
  if (!needs.length) return null;
  return html`<${Card} title=${t('attention')}><ul class="needs">${needs.map((need) => [need, actOn(need)]).map(([need, act]) => html`
    <li key=${need.kind + (need.channel || need.webhook || '') + need.since} class=${need.severity === 'problem' ? 'bad' : 'warn'}>
      <${Icon} name=${need.severity === 'problem' ? 'bad' : 'warn'} />
      <span class="grow"><${Said} said=${need} /> ${need.since && html`<span class="muted">${t('since', { time: html`<${Time} at=${need.since} ago />` })}</span>`}</span>
      ${act && html`<${Button} small href=${own(act.href)}>${label(act)}<//>`}
    </li>`)}</ul><//>`;
}

// Of a webhook that fails the newest deliveries were not even tried: its own page says what was answered.
const actOn = ({ webhook, action }) => (webhook && action?.name === 'deliveries' ? { name: 'webhook', href: `/webhooks?webhook=${webhook}` } : action);

// The server names a page of the console, or nothing that we follow.
const own = (to) => href(to?.startsWith('/') ? to.replace(/^\/console/, '') : '/');

function Tiles({ data }) {
  const { last24h: day, to_sent_ms: toSent, to_sent_from: from, to_delivered_ms: toDelivered, webhooks, otp } = data;
  const counts = Object.entries(data.channels).filter(([, n]) => n).sort((a, b) => urgency[a[0]] - urgency[b[0]]);
  const [worst] = counts[0] || [];
  const all = counts.reduce((sum, [, n]) => sum + n, 0);
  const broken = data.needs.filter((need) => need.kind === 'webhook').length;
  const pair = (times) => (times ? `${duration(times.p50)} / ${duration(times.p95)}` : '–');
  return html`<div class="tiles" role="group" aria-label=${t('last24h')}>
    <${Tile} value=${num(all)} label=${core('page.channels')} href=${href('/channels')} tone=${channelTone[worst] === 'bad' ? 'bad' : ''}
      sub=${counts.map(([status, n]) => `${num(n)} ${core(`channel.${status}`)}`).join(' · ') || t('noChannels')} />
    <${Tile} value=${num(day.sent)} label=${t('sent')} href=${href('/messages', { q: 'direction:out after:24h' })}
      sub=${t('deliveredRead', { delivered: percent(day.delivered, day.sent), read: percent(day.read, day.sent) })} />
    <${Tile} value=${num(day.received)} label=${t('received')} href=${href('/messages', { q: 'direction:in after:24h' })} />
    <${Tile} value=${num(day.failed)} label=${t('failed')} tone=${day.failed ? 'bad' : ''} href=${href('/messages', { q: 'status:failed after:24h' })}
      sub=${t('ofSent', { part: percent(day.failed, day.sent + day.failed) })} />
    <${Tile} value=${num(data.waiting)} label=${t('waiting')} href=${href('/messages', { q: 'status:pending' })} sub=${eta(data)} />
    <${Tile} value=${pair(toSent)} label=${t('toSent')} sub=${html`${isWhole(from) || html`${t('sinceStart', { time: html`<${Time} at=${from} />` })} · `}${t('toDelivered')} ${pair(toDelivered)}`} />
    <${Tile} value=${percent(webhooks.delivered, webhooks.delivered + webhooks.failed)} label=${t('webhooks')} tone=${broken || webhooks.failed ? 'warn' : ''} href=${href('/webhooks')}
      sub=${(broken ? `${t('broken', { n: broken })} · ` : '') + t('webhooksSub', { delivered: webhooks.delivered, failed: webhooks.failed, waiting: webhooks.waiting })} />
    <${Tile} value=${percent(otp.approved, otp.requested)} label=${t('otp')} href=${href('/otp')}
      sub=${`${num(otp.requested)} → ${num(otp.delivered)} → ${num(otp.approved)}`} />
  </div>`;
}

// Whether something is measured over the whole last day: what was before a start is not known.
const isWhole = (from) => now.value - Date.parse(from) >= 86_400_000;

// At the pace of the last minutes. Nothing was sent: nothing can be said.
function eta({ waiting, per_minute: minutes }) {
  const lately = minutes.slice(-5).reduce((sum, row) => sum + row.sent, 0) / 5;
  return waiting && lately ? t('eta', { time: duration((waiting / lately) * 60_000) }) : '';
}

const Chart = ({ rows }) => html`<${Card} title=${t('perMinute')}><${Bars} label=${t('perMinute')} rows=${rows} series=${[
  ...['sent', 'delivered', 'read'].map((id) => ({ id, label: t(id), tone: id, nested: true })),
  { id: 'failed', label: t('failed'), tone: 'failed' },
  { id: 'received', label: t('received'), tone: 'received', lane: 1 },
]} /><//>`;

function FirstRun() {
  if (hidden.value || steps.value.every((step) => step.done)) return null;
  const next = steps.value.find((step) => !step.done);
  return html`<${Card} class="first-run" title=${t('firstRun')} actions=${html`<${Button} small kind="quiet" onClick=${() => { hidden.value = true; }}>${t('hide')}<//>`}>
    <ol class="steps">${steps.value.map((step, i) => html`<li key=${step.id} class=${step.done ? 'done' : step === next ? 'next' : ''}>
      <a href=${href(step.to)}><i aria-hidden="true">${step.done ? html`<${Icon} name="check" size=${14} />` : i + 1}</i><span>${t(`step.${step.id}`)}</span>${step.done && html`<span class="sr">${t('done')}</span>`}</a></li>`)}</ol>
  <//>`;
}

function Doctor() {
  const [open, setOpen] = useState(false);
  return html`<${Button} icon="bolt" onClick=${() => setOpen(true)}>${t('doctor')}<//>
    <${Dialog} wide open=${open} title=${t('doctor')} onClose=${() => setOpen(false)}><${Findings} /><//>`;
}

const levels = { ok: 'good', warning: 'warn', problem: 'bad' };

function Findings() {
  const load = useLoad(() => api.get('/manage/doctor'));
  if (load.error) return html`<${Failed} load=${load} />`;
  if (!load.data) return html`<${Loading} rows=${6} />`;
  const { findings } = load.data.data;
  const count = (level) => findings.filter((finding) => finding.level === level).length;
  const text = findings.map((finding) => `${finding.level}\t${finding.name}\t${finding.sentence}\t${finding.remedy || ''}`.trimEnd()).join('\n');
  return html`
    <p class="spread"><span>${count('problem') + count('warning') ? `${t('problemCount', { n: count('problem') })}, ${t('warningCount', { n: count('warning') })}` : t('healthy')}</span>
      <span class="row"><${Button} small icon="refresh" onClick=${load.reload}>${core('again')}<//><${Copy} small text=${text} what=${t('findings')}>${core('copy', { what: t('findings') })}<//></span></p>
    <ul class="needs">${findings.map((finding) => html`<li key=${finding.name + finding.sentence} class=${levels[finding.level]}>
      <${Icon} name=${levels[finding.level]} /><b class="finding">${about(finding)}</b>
      <span class="grow"><span class="sr">${t(`level.${finding.level}`)}: </span><${Said} said=${finding} /></span></li>`)}</ul>`;
}

function Server() {
  const { value: info } = server;
  if (!info) return null;
  const up = now.value - Date.parse(info.started_at);
  return html`<${Card} title=${t('server')} actions=${html`<${Badge}>${info.mode}<//>`}>
    <${Facts} rows=${[
      [t('version'), `${info.version}${info.go_version ? ` (${info.go_version})` : ''}`],
      [t('upTime'), html`${duration(Math.max(0, up))} <span class="muted">${t('since', { time: html`<${Time} at=${info.started_at} />` })}</span>`],
      [t('database'), t('databaseSize', { size: bytes(info.database_bytes), free: bytes(info.data_dir_free_bytes) })],
      [t('backup'), !info.cluster && (info.last_backup ? html`<${Time} at=${info.last_backup.at} ago /> <span class="muted clip" title=${info.last_backup.path}>${info.last_backup.path}</span>` : t('noBackup'))],
      [t('address'), html`<span class="row"><code>${info.url}</code><${Copy} text=${info.url} what=${t('address')} /></span>`],
      [t('metrics'), html`<code>${info.local_url}/metrics</code>`],
      [core('page.channels'), num(channels.value.length)],
    ]} />
    ${!info.last_backup && !info.cluster && info.mode === 'serve' && html`<${Note} kind="warn">${t('backupHint')} <a href=${href('/settings')}>${core('page.settings')}</a><//>`}
  <//>`;
}

// What the server says of itself.

/** A need or a finding, in the words of the server, and what to do about it: a command, or a sentence. */
export function Said({ said: { sentence, remedy } }) {
  const isCommand = /^(parley|chmod) /.test(remedy);
  return html`<bdi>${sentence}</bdi>${remedy && html` ${isCommand ? html`<code>${remedy}</code>` : html`<bdi>${remedy}</bdi>`}`}`;
}

/** What a finding is about: "channel demo". */
export function about({ name }) {
  const [check, ...rest] = name.split(' ');
  return t.has(`check.${check}`) ? [t(`check.${check}`), ...rest].join(' ') : name;
}

export const label = ({ name, label: english }) => (t.has(`act.${name}`) ? t(`act.${name}`) : english);
