// One channel: how it stands, why that can be believed, and all that can be done with it.
import { html, css, useEffect } from '../view.js';
import { api, useLoad } from '../api.js';
import { useKeys } from '../keys.js';
import { useEvents } from '../live.js';
import { go, href, query, setQuery } from '../router.js';
import { now, reloadChannels, useSecond } from '../state.js';
import { texts, num, duration, full } from '../i18n.js';
import { Head } from '../parts/head.js';
import { Button, Copy, copyText } from '../parts/button.js';
import { AsCode } from '../parts/code.js';
import { Empty, Loading, Failed } from '../parts/card.js';
import { confirm } from '../parts/dialog.js';
import { Badge, ChannelStatus } from '../parts/status.js';
import { Tabs } from '../parts/tabs.js';
import { Time } from '../parts/time.js';
import { Who, mask } from '../parts/who.js';
import { History } from './channel-history.js';
import { PairPanel } from './channel-pair.js';
import { Settings, Danger } from './channel-settings.js';
import { GoLive } from './channel-golive.js';
import NotFound from './notfound.js';

const t = texts('channel');
const core = texts('core');

css('pages/channels.css');

const others = ['messages', 'webhooks']; // tabs that are pages of their own
const own = ['', 'pair', 'settings', 'danger'];

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
  if (load.error?.status === 404) return html`<${Head} title=${code} back=${back} /><${Empty} icon="channels" title=${t('gone', { code })} />`;
  if (!channel) return html`<${Head} title=${code} back=${back} />${load.error ? html`<${Failed} load=${load} />` : html`<${Loading} rows=${4} />`}`;
  const link = (part) => href(`/channels/${code}${part}`);
  const tabs = [
    { id: '', label: t('status'), href: link('') },
    { id: 'pair', label: t('pair'), href: link('/pair') },
    { id: 'messages', label: core('page.messages'), href: href('/messages', { channel: code }) },
    { id: 'webhooks', label: core('page.webhooks'), href: href('/webhooks', { channel: code }) },
    { id: 'settings', label: core('page.settings'), href: link('/settings') },
    { id: 'danger', label: t('danger'), href: link('/danger') },
  ];
  return html`
    <${Head} title=${mask(channel.name)} back=${back} lead=${html`<${Lead} of=${channel} />`} actions=${html`<${Actions} of=${channel} changed=${changed} pairing=${tab === 'pair'} />`}>
      <p class="row channel-facts"><${ChannelStatus} status=${channel.status} /><span class="row nowrap"><code>${code}</code><${Copy} text=${code} what=${t('code')} /></span>
        <${Badge} tone=${channel.network === 'sandbox' ? 'warn' : 'good'}>${channel.network}<//>${channel.number && html`<${Who} number=${channel.number} />`}
        <a href=${href('/tokens', { channel: code })}>${t('tokens')}</a></p>
    <//>
    <${Evidence} of=${channel} />
    <${Tabs} label=${t('sections')} tabs=${tabs} current=${tab} />
    ${tab === 'pair' ? html`<${PairPanel} channel=${channel} goLive=${() => setQuery({ golive: 1 })} />`
      : tab === 'settings' ? html`<${Settings} channel=${channel} changed=${changed} />`
        : tab === 'danger' ? html`<${Danger} channel=${channel} changed=${changed} />`
          : html`<${History} channel=${channel} />`}
    ${query.value.golive && channel.network === 'sandbox' && html`<${GoLive} channel=${channel} changed=${changed} />`}`;
}

// The sentence that a support person would say.
const Lead = ({ of: channel }) => html`${t(`is.${channel.status}`, { time: html`<${Time} at=${channel.since} ago />` })} <bdi>${channel.reason}</bdi>${
  channel.restricted_until && html` ${t('restricted', { time: html`<${Time} at=${channel.restricted_until} />` })}`}${
  channel.waiting > 0 && html` <a href=${href('/messages', { channel: channel.code, q: 'status:pending' })}>${t('waits', { n: channel.waiting })}</a>`}`;

const unpaired = ['SCAN_QR_CODE', 'LOGGED_OUT', 'FAILED'];

function Actions({ of: channel, changed, pairing }) {
  const { code } = channel;
  const post = (verb) => async () => {
    if (verb === 'stop' && !await confirm({ title: t('stopTitle', { code }), text: t('stopText'), action: t('stop'), danger: true })) return;
    await api.post(`/manage/channels/${code}/${verb}`);
    await changed();
  };
  const sandbox = channel.network === 'sandbox';
  return html`<${AsCode} request=${{ path: `/api/manage/channels/${code}` }} />
    ${channel.enabled ? html`<${Button} key="stop" icon="stop" onClick=${post('stop')}>${t('stop')}<//>` : html`<${Button} key="start" icon="play" onClick=${post('start')}>${t('start')}<//>`}
    ${sandbox && !pairing && html`<${Button} kind="primary" icon="bolt" onClick=${() => setQuery({ golive: 1 })}>${t('goLive')}<//>`}
    ${!pairing && unpaired.includes(channel.status) && html`<${Button} kind="primary" icon="qr" href=${href(`/channels/${code}/pair`)}>${t('pair')}<//>`}`;
}

// Health is evidence, not a flag. What a network cannot tell is left out; the messages tell the rest.
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
      <dd title=${at ? full(at) : undefined}>${at ? name === 'connected' ? t('openFor', { time: since(at) }) : core('ago', { time: since(at) }) : t('never')}</dd></div>`)}
    <div><dt>${t('waiting')}</dt><dd>${num(channel.waiting)}</dd></div>
    <div><dt>${t('day')}</dt><dd>${num(channel.sent_24h)} / <span class=${channel.failed_24h ? 'some-failed' : ''}>${num(channel.failed_24h)}</span></dd></div>
  </dl>`;
}

const latest = (...times) => times.filter(Boolean).sort().at(-1);
