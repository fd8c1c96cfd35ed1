// What can be done with a message in a chat.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Button } from './button.js';

const t = texts('phone');

const emojis = ['👍', '❤️', '😂', '😮', '😢', '🙏'];

export const Actions = ({ m, onReply, onReact, onDelete, children }) => html`<div class="bubble-acts">
    ${!m.deleted && onReply && html`<${Button} small kind="quiet" icon="reply" onClick=${onReply}>${t('reply')}<//>`}
    ${!m.deleted && onReact && emojis.map((emoji) =>
      html`<button key=${emoji} type="button" class="emoji" aria-label=${t('react', { emoji })} onClick=${() => onReact(emoji)}>
        ${emoji}</button>`)}
    ${!m.deleted && onDelete && html`<${Button} small kind="quiet" icon="trash" onClick=${onDelete}>${t('delete')}<//>`}
    ${children}
  </div>`;
