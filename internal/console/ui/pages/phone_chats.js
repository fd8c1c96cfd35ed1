// The chats of a simulated phone with several channels.
import { html } from '../view.js';
import { api, useLoad } from '../api.js';
import { channelBy } from '../state.js';
import { texts } from '../i18n.js';
import { excerpt } from '../parts/bubble.js';
import { Failed, Loading } from '../parts/card.js';
import { Time } from '../parts/time.js';
import { mask } from '../parts/who.js';

const t = texts('phone');

const called = (code) => mask(channelBy(code)?.name || code);

export function Chats({ phones, digits, onPick }) {
  const codes = phones.channels(digits);
  const load = useLoad(() => Promise.all(codes.map(async (channel) =>
    (await api.get(`/sandbox/phones/${digits}/chats`, { channel })).data)), [digits, codes.join()], { on: ['message.'] });
  if (load.error && !load.data) return html`<${Failed} load=${load} />`;
  if (!load.data) return html`<${Loading} rows=${3} />`;
  const said = load.data.flat().sort((a, b) => (a.timestamp < b.timestamp ? 1 : -1));
  const silent = said.length ? [] : phones.shown;
  return html`<ul class="chats" aria-label=${t('chats')}>
    ${said.map((chat) => html`<li key=${chat.channel}><button type="button" onClick=${() => onPick({ to: chat.channel })}>
      <b class="clip"><bdi>${called(chat.channel)}</bdi></b><${Time} at=${chat.timestamp} /><bdi class="clip muted">
        ${chat.typing ? t('typing') : excerpt(chat.last)}</bdi>
      ${chat.unread > 0 && html`<span class="unread">${chat.unread}<span class="sr"> ${t('unread')}</span></span>`}</button></li>`)}
    ${silent.map((code) => html`<li key=${code}><button type="button" onClick=${() => onPick({ to: code })}><b class="clip"><bdi>
      ${called(code)}</bdi></b><span /><span class="muted">${t('noneYet')}</span></button></li>`)}
  </ul>`;
}
