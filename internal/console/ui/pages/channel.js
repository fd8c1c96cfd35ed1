// One channel: its status, the evidence for it, and its actions.
import { html, useEffect } from '../view.js';
import { api, useLoad } from '../api.js';
import { useKeys } from '../keys.js';
import { useEvents } from '../live.js';
import { go, href, query, setQuery } from '../router.js';
import { networkBy, now, reloadChannels, server, useSecond, hasRole } from '../state.js';
import { texts, num, duration, full } from '../i18n.js';
import { Head, Empty, Loading, Failed, NeedsRole } from '../parts/card.js';
import { ChannelTabs } from '../parts/channel_tabs.js';
import { Labels } from '../parts/labels.js';
import { Button, Copy, copyText } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { confirm } from '../parts/dialog.js';
import { lazy } from '../parts/lazy.js';
import { Badge } from '../parts/status.js';
import { ChannelStatus, Reason } from '../parts/channel_status.js';
import { Time } from '../parts/time.js';
import { Who, mask } from '../parts/who.js';
import NotFound from './notfound.js';

const History = lazy(() => import('./channel_history.js').then((module) => module.History), 4);
const PairPanel = lazy(() => import('./channel_pair.js').then((module) => module.PairPanel), 4);
const AccountPanel = lazy(() => import('./channel_account.js').then((module) => module.AccountPanel), 4);
const Templates = lazy(() => import('./channel_templates.js').then((module) => module.Templates), 4);
const Requests = lazy(() => import('./channel_requests.js').then((module) => module.Requests), 4);
const Settings = lazy(() => import('./channel_settings.js').then((module) => module.Settings), 4);
const Danger = lazy(() => import('./channel_danger.js').then((module) => module.Danger), 4);
const GoLive = lazy(() => import('./channel_golive.js').then((module) => module.GoLive));

const t = texts('channel');
const core = texts('core');

const others = ['messages', 'webhooks']; // tabs that are pages of their own, with the same tabs above them
const own = ['', 'pair', 'requests', 'templates', 'settings', 'danger'];

export default function Page({ route }) {
  const { code, tab = '' } = route.params;
  const other = others.includes(tab);
  useEffect(() => { if (other) go(`/${tab}`, { channel: code }, { replace: true }); }, [tab]);
  if (other) return null;
  return own.includes(tab) ? html`<${Channel} key=${code} code=${code} tab=${tab} />` : html`<${NotFound} route=${route} />`;
}

function Channel({ code, tab }) {
  const load = useLoad(async () => (await api.get(`/manage/channels/${encodeURIComponent(code)}`)).data, [now.value]);
  useEvents(['channel.'], (events) => { if (events.some((event) => event.channel === code)) load.reload(); });
  useKeys([['y', core('copy', { what: t('code') }), () => copyText(code, t('code'))]]);
  const changed = () => Promise.all([load.reload(), reloadChannels()]);
  const back = { href: href('/channels'), label: core('page.channels') };
  const channel = load.data;
  if (load.error?.status === 404) return html`<${Head} title=${code} back=${back} />
    <${Empty} icon="channels" title=${t('gone', { code })} />`;
  if (!channel) return html`<${Head} title=${code} back=${back} />
    ${load.error ? html`<${Failed} load=${load} />` : html`<${Loading} rows=${4} />`}`;
  return html`
    <${Head} title=${mask(channel.name)} back=${back} lead=${html`<${Lead} of=${channel} />`}
      actions=${html`<${Actions} of=${channel} changed=${changed} pairing=${tab === 'pair'} />`}>
      <p class="row channel-facts"><${ChannelStatus} status=${channel.status} /><span class="row nowrap"><code>${code}</code>
        <${Copy} text=${code} what=${t('code')} /></span>
        <${Badge} tone=${channel.simulated ? 'warn' : 'good'}>${channel.network}<//>
          ${channel.number && html`<${Who} number=${channel.number} />`}
        <a href=${href('/tokens', { channel: code })}>${t('tokens')}</a><${Labels} of=${channel.labels} /></p>
    <//>
    ${tab !== 'pair' && html`<${Evidence} of=${channel} />`}
    <${ChannelTabs} code=${code} current=${tab} />
    ${['pair', 'danger'].includes(tab) && !hasRole('operator') ? html`<${NeedsRole} role="operator" />` : tab === 'pair'
      ? !server.value ? html`<${Loading} />` : hasAccount(channel) ? html`<${AccountPanel} channel=${channel} changed=${changed} />`
        : html`<${PairPanel} channel=${channel} goLive=${() => setQuery({ golive: 1 })} changed=${changed} /><${Evidence} of=${channel} />`
      : tab === 'templates' ? html`<${Templates} channel=${channel} />`
      : tab === 'requests' ? html`<${Requests} channel=${channel} />`
      : tab === 'settings' ? html`<${Settings} channel=${channel} changed=${changed} />`
        : tab === 'danger' ? html`<${Danger} channel=${channel} changed=${changed} />`
          : html`<${History} channel=${channel} />`}
    ${query.value.golive && channel.simulated && html`<${GoLive} channel=${channel} changed=${changed} />`}`;
}

// The sentence that a support person would say.
const Lead = ({ of: channel }) => html`${t(`is.${channel.status}`, { time: html`<${Time} at=${channel.since} ago />` })} <${Reason}
  text=${channel.reason} />${
  channel.restricted_until && html` ${t('restricted', { time: html`<${Time} at=${channel.restricted_until} />` })}`}${
  channel.waiting > 0 && html` <a href=${href('/messages', { channel: channel.code, q: 'status:pending' })}>
    ${t('waits', { n: channel.waiting })}</a>`}`;

const hasAccount = (channel) => networkBy(channel.network)?.credentials.length > 0;

const unpaired = ['SCAN_QR_CODE', 'LOGGED_OUT', 'FAILED'];

function Actions({ of: channel, changed, pairing }) {
  const { code } = channel;
  const post = (verb) => async () => {
    if (verb === 'stop' && !await confirm({ title: t('stopTitle', { code }), text: t('stopText'), action: t('stop'),
      danger: true })) return;
    await api.post(`/manage/channels/${code}/${verb}`);
    await changed();
  };
  const sandbox = channel.simulated;
  return html`<${AsCode} request=${{ path: `/api/manage/channels/${code}` }} />
    ${channel.enabled ? html`<${Button} key="stop" need="operator" icon="stop" onClick=${post('stop')}>${t('stop')}<//>`
      : html`<${Button} key="start" need="operator" icon="play" onClick=${post('start')}>${t('start')}<//>`}
    ${sandbox && !pairing && html`<${Button} need="operator" kind="primary" icon="bolt" ...${GoLive.near}
      onClick=${() => setQuery({ golive: 1 })}>
      ${t('goLive')}<//>`}
    ${!pairing && unpaired.includes(channel.status) &&
      html`<${Button} need="operator" kind="primary" icon=${hasAccount(channel) ? 'tokens' : 'qr'} href=${href(`/channels/${code}/pair`)}>
        ${t(hasAccount(channel) ? 'account' : 'pair')}<//>`}`;
}

// Facts that the network does not provide are left out.
function Evidence({ of: channel }) {
  const time = useSecond();
  const seen = channel.evidence || {};
  const since = (at) => duration(Math.max(1000, Math.floor((time - Date.parse(at)) / 1000) * 1000));
  const facts = [
    ...(channel.evidence ? [['connected', seen.connected_at], ['heard', seen.heard_at]] : []),
    ['confirmed', latest(seen.confirmed_at, channel.last_confirmed_at)], ['received', latest(seen.received_at, channel.last_inbound_at)],
  ];
  return html`<dl class="evidence" aria-label=${t('evidence')}>
    ${facts.map(([name, at]) => html`<div key=${name} data-t=${`evidence-${name}`}><dt>${t(name)}</dt>
      <dd title=${at ? full(at) : undefined}>${at ? name === 'connected' ? t('openFor', { time: since(at) })
        : core('ago', { time: since(at) }) : t('never')}</dd></div>`)}
    <div><dt>${t('waiting')}</dt><dd>${num(channel.waiting)}</dd></div>
    ${channel.today && [['firstToday', 'first_contacts'], ['messagesToday', 'messages']].map(([name, key]) => {
      const n = num(channel.today[key]), cap = channel.today[`${key}_cap`];
      return html`<div key=${name} data-t=${name}><dt>${t(name)}</dt><dd>${cap === null ? n : t('ofCap', { n, cap: num(cap) })}</dd></div>`;
    })}
    <div><dt>${t('day')}</dt><dd>${num(channel.sent_24h)} / <span class=${channel.failed_24h ? 'some-failed' : ''}>
      ${num(channel.failed_24h)}</span></dd></div>
  </dl>`;
}

const latest = (...times) => times.filter(Boolean).sort().at(-1);
