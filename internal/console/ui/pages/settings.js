// How this server keeps things and what it logs, and how this browser shows the console.
import { html, useState } from '../view.js';
import { api, useLoad } from '../api.js';
import { href } from '../router.js';
import { server, theme, setTheme, lang, setLang, languages, shortcuts } from '../state.js';
import { hidden } from '../checklist.js';
import { texts, bytes, duration } from '../i18n.js';
import { Head, Card, Facts, Failed, Loading, Note } from '../parts/card.js';
import { Tabs, TabPanel } from '../parts/tabs.js';
import { Button, Copy } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { Time } from '../parts/time.js';
import { toast } from '../parts/toast.js';
import { Dialog } from '../parts/dialog.js';

const t = texts('settings');
const core = texts('core');

// Licences stand beside the modules that they are of.
const modules = { Preact: 'preact', HTM: 'htm', 'Preact Signals': 'signals', 'Signals Core': 'signals-core' };
const licence = (file) => new URL(`../vendor/${file}.LICENSE.txt`, import.meta.url).href;

const levels = ['debug', 'info', 'warn', 'error'];
const spans = [5, 15, 60, 240]; // minutes

const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
/** Milliseconds of a length of time like 720h or 1h30m. */
const length = (text) => [...text.matchAll(/([\d.]+)(ms|[hms])/g)].reduce((sum, [, n, unit]) => sum + n * units[unit], 0);

export default function Page() {
  const load = useLoad(async () => {
    const { data } = await api.get('/manage/server');
    server.value = data;
    return data;
  });
  const info = load.data || server.value;
  return html`
    <${Head} title=${core('page.settings')} lead=${info && t('lead', { version: info.version, mode: info.mode })} />
    <div class="settings">
      <${Reader} />
      ${info ? html`<${Backup} info=${info} reload=${load.reload} /><${Retention} info=${info} />
        <${LogLevel} info=${info} reload=${load.reload} /><${Diagnostics} /><${Metrics} info=${info} />`
        : load.error ? html`<${Failed} load=${load} />` : html`<${Loading} rows=${5} />`}
      <${Licences} />
    </div>`;
}

/** What only this browser keeps. */
function Reader() {
  const form = { errors: {}, values: { theme: theme.value, language: lang.value }, set: (name, value) =>
    (name === 'theme' ? setTheme : setLang)(value) };
  return html`<${Card} title=${t('browser')}>
    <div class="form">
      <${Field} form=${form} name="theme" label=${core('theme')} type="radio"
        options=${['auto', 'light', 'dark'].map((name) => [name, core(`theme.${name}`)])} />
      <${Field} form=${form} name="language" label=${core('language')} type="select" options=${Object.entries(languages)} />
      <label class="choice"><input type="checkbox" role="switch" checked=${shortcuts.value}
        onChange=${(event) => { shortcuts.value = event.target.checked; }} /><span>${t('shortcuts')}</span></label>
      <p class="hint">${t('shortcutsHint', { key: html`<kbd>?</kbd>` })}</p>
      <label class="choice"><input type="checkbox" role="switch" checked=${!hidden.value}
        onChange=${(event) => { hidden.value = !event.target.checked; }} /><span>${t('firstSteps')}</span></label>
    </div>
  <//>`;
}

function Backup({ info, reload }) {
  const [made, setMade] = useState(null);
  const run = async () => {
    const begun = performance.now();
    const { data } = await api.post('/manage/backup');
    setMade({ ...data, ms: performance.now() - begun });
    toast(t('backupMade', { size: bytes(data.bytes) }), { kind: 'good' });
    await reload();
  };
  if (info.cluster) return html`<${Card} title=${t('backup')}><p>${t('backupCluster', { media: html`<code>--media</code>` })}</p><//>`;
  const last = info.last_backup;
  return html`<${Card} title=${t('backup')} actions=${html`<${AsCode} small request=${{ method: 'POST', path: '/api/manage/backup' }} />`}>
    <${Facts} rows=${[
      [t('last'), last ? html`<${Time} at=${last.at} ago />` : t('noBackup')],
      [t('file'), last && html`<span class="row nowrap"><code>${last.path}</code><${Copy} text=${last.path} what=${t('file')} /></span>`],
      [t('result'), made && t('madeIn', { size: bytes(made.bytes), time: duration(made.ms) })],
      [t('database'), t('databaseSize', { size: bytes(info.database_bytes), free: bytes(info.data_dir_free_bytes) })],
    ]} />
    <div class="row"><${Button} need="operator" kind="primary" icon="download" onClick=${run}>${t('backupNow')}<//>
      ${last && html`<${Button} need="owner" icon="download" href="/console/api/manage/backup/file" download="">
        ${t('backupDownload', { size: bytes(last.bytes) })}<//>`}</div>
    <p class="hint">${t('backupHint')}</p>
  <//>`;
}

const Retention = ({ info }) => html`<${Card} title=${t('retention')}>
  <${Facts} rows=${[
    [t('events'), html`${duration(length(info.retention.events))} <code>--event-retention</code>`],
    [t('otp'), html`${duration(length(info.retention.otp))} <code>--otp-retention</code>`],
    ...(info.retention.messages === '0s' ? [] : [[core('page.messages'),
      html`${duration(length(info.retention.messages))} <code>--message-retention</code>`]]),
    [core('page.messages'), html`${t('messages')} <a href=${href('/channels')}>${core('page.channels')}</a>`],
  ]} />
  <p class="hint">${t('retentionHint')}</p>
<//>`;

function LogLevel({ info, reload }) {
  const now = info.log_level;
  const form = useForm({ level: 'debug', minutes: '15' }, async (values) => {
    const { data } = await api.patch('/manage/log-level', wanted(values));
    toast(t('levelSet', { level: data.level }), { kind: 'good' });
    await reload();
  });
  const wanted = ({ level, minutes }) => ({ level, minutes: Number(minutes) });
  return html`<${Card} title=${t('log')}
    actions=${now && html`<${AsCode} small request=${{ method: 'PATCH', path: '/api/manage/log-level', body: wanted(form.values) }} />`}>
    ${now ? html`
      <p>${now.until ? t('levelUntil', { level: html`<code>${now.level}</code>`, time: html`<${Time} at=${now.until} />` })
        : t('levelNow', { level: html`<code>${now.level}</code>` })}</p>
      <${Form} form=${form}>
        <div class="two"><${Field} form=${form} name="level" label=${t('level')} type="select" options=${levels} />
          <${Field} form=${form} name="minutes" label=${t('for')} type="select"
            options=${spans.map((n) => [String(n), duration(n * 60_000)])} /></div>
        <${Submit} need="operator" form=${form} kind="">${t('change')}<//>
      <//>
      <p class="hint">${t('logHint')}</p>` : html`<${Note}>${t('levelFixed')}<//>`}
  <//>`;
}

const Metrics = ({ info }) => html`<${Card} title=${t('metrics')}
  actions=${html`<${Button} small icon="window" href="/metrics" target="_blank">${t('open')}<//>`}>
  <p class="muted">${t('metricsText')}</p>
  <${Code} text=${`${info.local_url}/metrics`} what=${t('address')} />
  <p class="hint">${t('metricsHint', { flag: html`<code>--metrics-open</code>` })}</p>
<//>`;

const Licences = () => html`<${Card} title=${t('licences')}>
  <p class="muted">${t('licencesText')}</p>
  <ul class="row">${Object.entries(modules)
    .map(([name, file]) => html`<li key=${file}><a class="chip" href=${licence(file)} target="_blank">${name}</a></li>`)}</ul>
<//>`;

// The support bundle: its content is shown before it is saved.

async function save() {
  const url = URL.createObjectURL(await api.blob('/manage/diagnostics'));
  const download = `parley-diagnostics-${new Date().toISOString().replace(/[-:]|\..../g, '')}.zip`;
  Object.assign(document.createElement('a'), { href: url, download }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function Diagnostics() {
  const [files, setFiles] = useState(null);
  const [picked, setPicked] = useState('');
  const look = async () => {
    const { data } = await api.get('/manage/diagnostics/contents');
    setPicked(data[0].name);
    setFiles(data);
  };
  return html`<${Card} title=${t('diagnostics')}>
    <p class="muted">${t('diagnosticsText')}</p>
    <div class="row"><${Button} need="operator" icon="file" onClick=${look}>${t('diagnosticsLook')}<//></div>
    <p class="hint">${t('diagnosticsHint', { command: html`<code>parley diagnostics</code>` })}</p>
    <${Dialog} wide open=${files} title=${t('diagnostics')} onClose=${() => setFiles(null)}
      foot=${html`<${Button} kind="primary" icon="download" onClick=${save}>${t('diagnosticsSave')}<//>`}>
      <div class="bundle"><${Tabs} small label=${t('diagnosticsFiles')} current=${picked} onPick=${setPicked}
        tabs=${files?.map((file) => ({ id: file.name, label: file.name, count: bytes(file.bytes) }))} /></div>
      <${TabPanel} label=${picked}><${Code} text=${files?.find((file) => file.name === picked).text} what=${picked} /><//>
    <//>
  <//>`;
}
