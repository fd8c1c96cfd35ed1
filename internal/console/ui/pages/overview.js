// What needs attention, then how it goes: the first page, and the one to keep open.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href, query, setQuery } from '../router.js';
import { server, totals, selected, now, lang } from '../state.js';
import { steps, hidden, tickFrom } from '../checklist.js';
import { texts, num, percent, duration, bytes } from '../i18n.js';
import { Head, Card, Tile, Facts, Note, Loading, Failed } from '../parts/card.js';
import { Button, Copy } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Badge } from '../parts/status.js';
import { urgency, channelTone } from '../parts/channel_status.js';
import { Remedy } from '../parts/remedy.js';
import { Time, Said as Words } from '../parts/time.js';
import { Trends } from '../parts/trends.js';
import { toast } from '../parts/toast.js';

const t = texts('overview');
const core = texts('core');

export default function Page() {
  const load = useLoad(async () => {
    const { data } = await api.get('/manage/overview', { query: { channel: selected.value } });
    tickFrom(data);
    return data;
  }, [selected.value, now.value - (now.value % 30_000)], { on: ['message.', 'channel.status', 'otp.'] });
  const data = load.data;
  // What is not of one channel alone concerns the picked one too.
  const needs = data?.needs.filter((need) => !selected.value || !need.channel || need.channel === selected.value);
  // Nothing is shown before everything above it has its height.
  return html`
    <${Head} title=${core('page.overview')} lead=${needs ? lead(data, needs) : '\u00a0'} actions=${html`<${Doctor} />`} />
    ${load.error && html`<${Failed} load=${load} />`}
    ${!data && !load.error && html`<${Loading} rows=${5} />`}
    ${data && html`<${Needs} needs=${needs} all=${selected.value ? needs.length : data.problems + data.warnings} onDone=${load.reload} />
      <${FirstRun} />
      ${selected.value && html`<p class="muted">${t('ofAll')}</p>`}<${Tiles} data=${data} />
      <${Trends} channel=${selected.value} span=${query.value.span} onSpan=${(span) => setQuery({ span }, { replace: true })} />
        <${Server} />`}`;
}

/** "2 problems and 3 warnings need attention." The server counts; of one channel what is listed is counted. */
function lead(data, needs) {
  const count = (level) => needs.filter((need) => need.severity === level).length;
  const [problems, warnings] = selected.value ? [count('problem'), count('warning')] : [data.problems, data.warnings];
  const [some, few] = [problems && t('problemCount', { n: problems }), warnings && t('warningCount', { n: warnings })];
  if (!some && !few) return t('allClear');
  return some && few ? t('both', { problems: some, warnings: few }) : t(problems ? 'problems' : 'warnings', { n: problems || warnings });
}

const few = innerWidth < 720 ? 3 : 5; // needs that are shown at first

function Needs({ needs, all, onDone }) {
  const [open, setOpen] = useState(false);
  if (!needs.length) return null;
  const list = grouped(needs);
  const shown = open ? list : list.slice(0, few);
  const listed = list.reduce((sum, need) => sum + (need.many || 1), 0);
  return html`<${Card} title=${t('attention')}><ul class="needs">${shown.map((need) => html`
    <li key=${need.kind + need.code + (need.channel || '') + (need.webhook || '')} class=${need.severity === 'problem' ? 'bad' : 'warn'}>
      <${Icon} name=${need.severity === 'problem' ? 'bad' : 'warn'} /><span class="sr">${t(`level.${need.severity}`)}: </span>
      <span class="grow">${need.many ? t(`many.${need.code}`, { n: need.many }) : html`<${Need} need=${need} />`}</span>
      <span class="row">${need.code === 'webhook_failing' && html`<${Retry} webhook=${need.webhook} onDone=${onDone} />`}
        <${Button} small href=${own(need.action.href)}>${label(need.action)}<//></span>
    </li>`)}</ul>
    ${list.length > few && html`<div class="row"><${Button} small kind="quiet" onClick=${() => setOpen(!open)}>
      ${open ? t('showFew') : t('showAll', { n: list.length })}<//>
      ${open && all > listed && html`<span class="muted">${t('andMore', { n: all - listed })}</span>`}</div>`}
  <//>`;
}

const together = 3; // more channels with the same problem are one line
const toStatus = { channel_logged_out: 'LOGGED_OUT', channel_not_paired: 'SCAN_QR_CODE', channel_failed: 'FAILED',
  channel_reconnecting: 'RECONNECTING' };

/** Many channels with the same problem become one need, which leads to the list of them. */
function grouped(needs) {
  const isMany = ({ code, alike }) => alike > together && toStatus[code];
  const seen = new Set();
  return needs.filter((need) => !isMany(need) || (!seen.has(need.code) && seen.add(need.code)))
    .map((need) => (isMany(need) ? { ...need, many: need.alike,
      action: { name: 'channels', href: `/channels?status=${toStatus[need.code]}` } } : need));
}

/** In English as the server says it, with its reason; else by its code, where there is a translation. */
function Need({ need }) {
  const known = t.has(`need.${need.code}`) && lang.value !== 'en';
  const since = need.since && html` <span class="muted since">${t('since', { time: html`<${Time} at=${need.since} ago />` })}</span>`;
  const remedy = need.action.name === 'checks' && need.remedy;
  return html`${known ? html`<bdi>${t(`need.${need.code}`, { channel: need.channel, url: need.url })}</bdi>`
    : html`<${Said} said=${{ sentence: need.sentence, remedy, since: need.until || need.since }} />`}${since}`;
}

const Retry = ({ webhook, onDone }) => html`<${Button} small need="operator" icon="refresh" onClick=${async () => {
  const { data } = await api.post(`/manage/webhooks/${webhook}/retry`);
  toast(t('retried', { n: data.waiting }), { kind: 'good' });
  await onDone();
}}>${t('retry')}<//>`;

// The server names a page of the console, or nothing that we follow.
const own = (to) => href(to?.startsWith('/') ? to.replace(/^\/console/, '') : '/');

function Tiles({ data }) {
  const { last24h: day, to_sent_ms: toSent, to_delivered_ms: toDelivered, webhooks, otp, queue } = data;
  const counts = Object.entries(data.channels).filter(([, n]) => n).sort((a, b) => urgency[a[0]] - urgency[b[0]]);
  const [worst] = counts[0] || [];
  const all = counts.reduce((sum, [, n]) => sum + n, 0);
  const broken = data.needs.filter((need) => /^webhook_(failing|off)$/.test(need.code)).length;
  const pair = (times) => (times ? `${duration(times.p50)} / ${duration(times.p95)}` : '–');
  return html`<div class="tiles" role="group" aria-label=${t('last24h')}>
    <${Tile} value=${t('workingOf', { n: num(data.channels.WORKING || 0), all: num(all) })} label=${t('working')}
      href=${href('/channels')} tone=${channelTone[worst] === 'bad' ? 'bad' : ''}
      sub=${counts.map(([status, n]) => `${num(n)} ${core(`channel.${status}`)}`).join(' · ') || t('noChannels')} />
    <${Tile} value=${num(day.sent)} label=${t('sent')} href=${href('/messages', { q: 'direction:out after:24h' })}
      sub=${t('deliveredRead', { delivered: percent(day.delivered, day.sent), read: percent(day.read, day.sent) })} />
    <${Tile} value=${num(day.received)} label=${t('received')} href=${href('/messages', { q: 'direction:in after:24h' })}
      sub=${t('last24h')} />
    <${Tile} value=${num(day.failed)} label=${t('failed')} tone=${day.failed ? 'bad' : ''}
      href=${href('/messages', { q: 'status:failed after:24h' })}
      sub=${t('ofSent', { part: percent(day.failed, day.sent + day.failed) })} />
    <${Tile} value=${num(data.waiting)} label=${t('waiting')} tone=${queue.stuck ? 'warn' : ''}
      href=${href('/messages', { q: 'status:pending' })} sub=${eta(queue)} />
    <${Tile} value=${pair(toSent)} label=${t('toSent')} sub=${`${t('toDelivered')} ${pair(toDelivered)}`} />
    <${Tile} value=${percent(webhooks.attempts - webhooks.failed_attempts, webhooks.attempts)} label=${t('webhooks')}
      tone=${broken ? 'warn' : ''} href=${href('/webhooks')}
      sub=${(broken ? `${t('broken', { n: broken })} · ` : '') + t('webhooksSub',
        { attempts: webhooks.attempts, waiting: webhooks.waiting })} />
    <${Tile} value=${percent(otp.approved, otp.requested)} label=${t('otp')} href=${href('/otp')}
      sub=${t('otpSub', { requested: otp.requested, delivered: otp.delivered, approved: otp.approved })} />
  </div>`;
}

/** When what waits will have left, at the pace of its channels, and how many cannot leave at all. */
function eta({ leaving, eta_seconds: seconds, stuck }) {
  const when = leaving > 0 && seconds != null && (seconds > 1 ? t('eta', { time: duration(seconds * 1000) }) : t('etaNow'));
  return [when, stuck > 0 && t('stuck', { n: stuck })].filter(Boolean).join(' · ') || (leaving ? t('etaUnknown') : t('nothingWaits'));
}

const isNew = () => totals.value?.all <= 3; // a server with more is in use

function FirstRun() {
  if (hidden.value || !isNew() || steps.value.every((step) => step.done)) return null;
  const next = steps.value.find((step) => !step.done);
  return html`<${Card} class="first-run" title=${t('firstRun')}
    actions=${html`<${Button} small kind="quiet" onClick=${() => { hidden.value = true; }}>${t('hide')}<//>`}>
    <ol class="steps">${steps.value.map((step, i) => html`<li key=${step.id} class=${step.done ? 'done' : step === next ? 'next' : ''}>
      <a href=${href(step.to)}><i aria-hidden="true">${step.done ? html`<${Icon} name="check" size=${14} />` : i + 1}</i><span>
        ${t(`step.${step.id}`)}</span>${step.done && html`<span class="sr">${t('done')}</span>`}</a></li>`)}</ol>
  <//>`;
}

/** The checks, which ?checks= opens. */
const Doctor = () => html`<${Button} icon="bolt" onClick=${() => setQuery({ checks: '1' })}>${t('doctor')}<//>
  <${Dialog} wide open=${Boolean(query.value.checks)} title=${t('doctor')} onClose=${() => setQuery({ checks: null })}><${Findings} /><//>`;

const levels = { ok: 'good', warning: 'warn', problem: 'bad' };

function Findings() {
  const load = useLoad(() => api.get('/manage/doctor'));
  if (load.error) return html`<${Failed} load=${load} />`;
  if (!load.data) return html`<${Loading} rows=${6} />`;
  const { findings, problems, warnings } = load.data.data;
  const passed = findings.filter((finding) => finding.level === 'ok');
  const text = findings.map((finding) =>
    `${finding.level}\t${finding.name}\t${finding.sentence}\t${finding.remedy || ''}`.trimEnd()).join('\n');
  return html`
    <p class="spread"><span>${problems + warnings ? `${t('problemCount', { n: problems })}, ${t('warningCount', { n: warnings })}`
      : t('healthy')}</span>
      <span class="row"><${Button} small icon="refresh" onClick=${load.reload}>${core('again')}<//>
        <${Copy} small text=${text} what=${t('findings')}>${core('copy', { what: t('findings') })}<//></span></p>
    <${FindingList} of=${findings.filter((finding) => finding.level !== 'ok')} />
    ${passed.length > 0 && html`<details><summary>${t('passedCount', { n: passed.length })}</summary><${FindingList} of=${passed} />
      </details>`}`;
}

const FindingList = ({ of }) => of.length > 0 &&
  html`<ul class="needs">${of.map((finding) => html`<li key=${finding.name + finding.sentence} class=${levels[finding.level]}>
  <${Icon} name=${levels[finding.level]} /><b class="finding">${about(finding)}</b>
  <span class="grow"><span class="sr">${t(`level.${finding.level}`)}: </span><${Said} said=${finding} /></span></li>`)}</ul>`;

function Server() {
  const { value: info } = server;
  if (!info) return null;
  const up = now.value - Date.parse(info.started_at);
  return html`<${Card} title=${t('server')} actions=${html`<${Badge}>${info.mode}<//>`}>
    <${Facts} rows=${[
      [t('version'), `${info.version}${info.go_version ? ` (${info.go_version})` : ''}`],
      [t('upTime'), html`${duration(Math.max(0, up))} <span class="muted">
        ${t('since', { time: html`<${Time} at=${info.started_at} />` })}</span>`],
      [t('database'), t('databaseSize', { size: bytes(info.database_bytes), free: bytes(info.data_dir_free_bytes) })],
      [t('backup'), !info.cluster &&
        (info.last_backup ? html`<${Time} at=${info.last_backup.at} ago /> <span class="muted clip" title=${info.last_backup.path}>
          ${info.last_backup.path}</span>` : t('noBackup'))],
      [t('address'), html`<span class="row"><code>${info.url}</code><${Copy} text=${info.url} what=${t('address')} /></span>`],
      [t('metrics'), html`<code>${info.local_url}/metrics</code>`],
      [t('client'), info.whatsapp_client && html`<${Time} at=${info.whatsapp_client} ago />`],
      [core('page.channels'), num(totals.value?.all || 0)],
    ]} />
    ${!info.last_backup && !info.cluster && info.mode === 'serve' &&
      html`<${Note} kind="warn">${t('backupHint')} <a href=${href('/settings')}>${core('page.settings')}</a><//>`}
  <//>`;
}

// What the server says of itself.

/** A need or a finding, in the words of the server, and what to do about it. */
export const Said = ({ said: { sentence, remedy, since } }) => html`<${Words} text=${sentence} at=${since} />
  ${remedy && html` <${Remedy} text=${remedy} />`}`;

/** What a finding is about: "channel demo". */
export function about({ name }) {
  const [check, ...rest] = name.split(' ');
  return t.has(`check.${check}`) ? [t(`check.${check}`), ...rest].join(' ') : name;
}

export const label = ({ name, label: english }) => (t.has(`act.${name}`) ? t(`act.${name}`) : english);
