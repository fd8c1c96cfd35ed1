// One message on a phone's screen, whatever its kind, and what can be done with it.
import { html, classes } from '../view.js';
import { clock, full, texts } from '../i18n.js';
import { Icon } from '../parts/icon.js';
import { Button, IconButton, Copy } from '../parts/button.js';
import { Tick, Badge } from '../parts/status.js';
import { Body, mask } from '../parts/who.js';
import { masked } from '../state.js';
import { Picture, Voice, Film, Document, Place } from './phone-media.js';

const core = texts('core');
const t = texts('phone');

const emojis = ['👍', '❤️', '😂', '😮', '😢', '🙏'];
const carried = { image: Picture, voice: Voice, video: Film, file: Document, location: Place };

/** What stands for a message in one line: its text without marks, or its kind. */
export const excerpt = (m) => (m.deleted ? t('deleted') : mask(m.body.split(emphasis).filter((_, i) => i % 3 !== 1).join('')) || t(`kind.${m.type}`));

/**
 * m: the message; quoted: what it answers, if that is known. act(body) does something as the phone; open says
 * whether what can be done is shown, onOpen(id) shows it. Without act and onOpen it is only looked at.
 */
export function Bubble({ m, quoted, who, where, act, open, onOpen, onReply, onInspect }) {
  const own = m.from_phone;
  const Carried = !m.deleted && carried[m.type];
  return html`<div class=${classes('bubble', own ? 'own' : 'theirs', m.deleted && 'deleted')} data-id=${m.id}>
    <span class="sr">${own ? who.phone : who.channel}: </span>
    ${m.reply_to && !m.deleted && html`<blockquote class="quoted">${quoted
      ? html`<b>${quoted.from_phone ? who.phone : who.channel}</b><bdi class="clip">${excerpt(quoted)}</bdi>` : t('quotedGone')}</blockquote>`}
    ${Carried && html`<${Carried} m=${m} ...${where} />`}
    ${m.deleted ? html`<em>${t('deleted')}</em>` : m.poll ? html`<${Poll} m=${m} act=${act} />` : m.type !== 'location' && m.body && html`<${Text} m=${m} />`}
    ${m.preview && html`<${Preview} preview=${m.preview} />`}
    ${m.codes.length > 0 && !own && !masked.value && html`<div class="row">${m.codes.slice(0, 3).map((code) => html`
      <${Copy} key=${code} small text=${code} what=${code}>${core('copy', { what: code })}<//>`)}</div>`}
    <div class="bubble-foot">
      ${m.reactions.length > 0 && html`<span class="reactions" aria-label=${t('reactions')} role="img">${m.reactions.join(' ')}</span>`}
      ${m.copies > 1 && html`<${Badge} tone="warn">${t('copies', { n: m.copies })}<//>`}
      <time datetime=${m.timestamp} title=${full(m.timestamp)}>${clock(m.timestamp).slice(0, 5)}</time>
      ${own && html`<${Tick} word=${false} status=${m.status === 'RECEIVED' ? 'DELIVERED' : m.status} />`}
      ${onOpen && html`<${IconButton} small icon="more" label=${t('more', { text: excerpt(m).slice(0, 40) })} aria-expanded=${String(open)} onClick=${() => onOpen(open ? '' : m.message_id)} />`}
    </div>
    ${open && html`<div class="bubble-acts">
      ${!m.deleted && html`<${Button} small kind="quiet" icon="reply" onClick=${onReply}>${t('reply')}<//>
        ${emojis.map((emoji) => html`<button key=${emoji} type="button" class="emoji" aria-label=${t('react', { emoji })}
          onClick=${() => act({ type: 'reaction', message_id: m.message_id, reaction: m.reactions.includes(emoji) ? '' : emoji })}>${emoji}</button>`)}
        ${own && html`<${Button} small kind="quiet" icon="trash" onClick=${() => act({ type: 'delete', message_id: m.message_id })}>${t('delete')}<//>`}`}
      <${Button} small kind="quiet" icon="code" onClick=${onInspect}>${t('inspect')}<//>
    </div>`}
  </div>`;
}

// *bold* and _slanted_, as phones show them.
const emphasis = /(?<![\p{L}\p{N}])([*_])(?=\S)([^*_\n]*\S)\1(?![\p{L}\p{N}])/u;

function emphasised(text) {
  const pieces = text.split(emphasis); // before, mark, words, before, …
  return pieces.map((piece, i) => (i % 3 === 0 ? piece : i % 3 === 2 && html`<${pieces[i - 1] === '*' ? 'b' : 'i'}>${piece}<//>`));
}

// What is an address in the text is a link; everything else is text and nothing else.
function Text({ m }) {
  if (masked.value) return html`<${Body} text=${m.body} />`;
  const pieces = [];
  let rest = m.body;
  for (const link of m.links) {
    const at = rest.indexOf(link);
    if (at < 0) continue;
    pieces.push(emphasised(rest.slice(0, at)), html`<a href=${link} target="_blank" rel="noreferrer noopener">${link}</a>`);
    rest = rest.slice(at + link.length);
  }
  return html`<bdi class="body">${pieces}${emphasised(rest)}</bdi>`;
}

function Preview({ preview: { url, title, description, thumbnail } }) {
  return html`<a class="preview" href=${url} target="_blank" rel="noreferrer noopener">
    ${thumbnail && html`<img src="data:image/jpeg;base64,${thumbnail}" alt="" />`}
    <span><b class="clip"><bdi>${mask(title || url)}</bdi></b>${description && html`<span class="muted"><bdi>${mask(description)}</bdi></span>`}
    <span class="muted row nowrap"><${Icon} name="link" size=${14} />${new URL(url).host}</span></span></a>`;
}

function Poll({ m, act }) {
  const { title, options, multiple } = m.poll;
  const vote = (name) => {
    const has = m.votes.includes(name);
    const others = multiple ? m.votes.filter((other) => other !== name) : [];
    return act({ type: 'vote', message_id: m.message_id, options: has ? others : [...others, name] });
  };
  return html`<div class="poll" role="group" aria-label=${mask(title)}><b><${Body} text=${title} /></b>
    <span class="muted">${t(multiple ? 'pollMany' : 'pollOne')}</span>
    ${options.map(({ name, votes }) => html`<button key=${name} type="button" class="option" aria-pressed=${String(m.votes.includes(name))}
      disabled=${m.from_phone || !act} onClick=${() => vote(name)}><i aria-hidden="true" class=${multiple ? '' : 'round'} /><bdi class="grow">${mask(name)}</bdi><span class="mono-num">${votes}</span></button>`)}</div>`;
}
