// The tabs of a channel: on its own page, and above the pages that show its messages and webhooks.
import { html } from '../view.js';
import { href } from '../router.js';
import { channelBy, hasRole, networkBy } from '../state.js';
import { texts } from '../i18n.js';
import { Tabs } from './tabs.js';

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
