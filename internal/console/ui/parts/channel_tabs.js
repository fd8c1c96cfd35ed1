// The tabs of a channel: on its own page, and above the pages that show its messages and webhooks.
import { html } from '../view.js';
import { href } from '../router.js';
import { channelBy, hasRole, networkBy, selected } from '../state.js';
import { texts } from '../i18n.js';
import { Tabs } from './card.js';
import { ChannelStatus } from './status.js';
import { Icon } from './icon.js';
import { mask } from './who.js';

const t = texts('channelTabs');
const core = texts('core');

export function ChannelTabs({ code, current }) {
  const link = (part) => href(`/channels/${code}${part}`, { channel: null });
  const network = networkBy(channelBy(code)?.network);
  return html`<${Tabs} label=${t('sections')} current=${current} tabs=${[
    { id: '', label: t('status'), href: link('') },
    ...(hasRole('operator') ? [{ id: 'pair', label: t(network?.credentials.length ? 'account' : 'pair'), href: link('/pair') }] : []),
    { id: 'messages', label: core('page.messages'), href: href('/messages', { channel: code }) },
    { id: 'webhooks', label: core('page.webhooks'), href: href('/webhooks', { channel: code }) },
    ...(network?.kinds.includes('template') ? [{ id: 'templates', label: t('templates'), href: link('/templates') }] : []),
    { id: 'requests', label: t('requests'), href: link('/requests') },
    { id: 'settings', label: core('page.settings'), href: link('/settings') },
    ...(hasRole('operator') ? [{ id: 'danger', label: t('danger'), href: link('/danger') }] : []),
  ]} />`;
}

/** The header of the picked channel with its tabs, for a page that shows only its part of something; nothing where none is picked. */
export function ChannelHead({ current }) {
  const code = selected.value;
  const channel = channelBy(code);
  if (!channel) return null;
  return html`<div class="channel-head" data-t="channel-head">
    <p class="row"><a class="back" href=${href('/channels', { channel: null })}><${Icon} name="left" size=${14} />
      ${core('page.channels')}</a>
      <a href=${href(`/channels/${code}`, { channel: null })}><b><bdi>${mask(channel.name)}</bdi></b></a><code>${code}</code>
        <${ChannelStatus} status=${channel.status} reason=${channel.reason} /></p>
    <${ChannelTabs} code=${code} current=${current} />
  </div>`;
}
