// The header of the picked channel with its tabs, for a page that shows only its part of something.
import { html } from '../view.js';
import { href } from '../router.js';
import { channelBy, selected } from '../state.js';
import { texts } from '../i18n.js';
import { ChannelStatus } from './channel_status.js';
import { ChannelTabs } from './channel_tabs.js';
import { Icon } from './icon.js';
import { mask } from './who.js';

const core = texts('core');

/** Nothing where the channel is not known. */
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
