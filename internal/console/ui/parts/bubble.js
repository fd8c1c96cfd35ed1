// One message as a phone shows it, whatever its kind, and what can be done with it.
import { html, classes } from '../view.js';
import { masked } from '../state.js';
import { texts, clock, full } from '../i18n.js';
import { Icon } from './icon.js';
import { lazy } from './lazy.js';
import { Button, IconButton, Copy } from './button.js';
import { Tick, Badge } from './status.js';
import { mask, Body } from './who.js';

const t = texts('phone');
const core = texts('core');

const Actions = lazy(() => import('./bubble_actions.js').then((module) => module.Actions));

/** A message in one line: its text without formatting, or its kind. */
export const excerpt = (m) => (m.deleted ? t('deleted') : mask(m.body.split(emphasis).filter((_, i) => i % 3 !== 1).join('')) ||
  kindName(m.type));

/** What a kind of message is called. */
export const kindName = (type) => (t.has(`kind.${type}`) ? t(`kind.${type}`) : type);

/** A message of the management API as a bubble takes it. What it carried may not be stored, or not be there yet: then it has a note. */
export function asBubble(m) {
  const media = m.media && { ...m.media, bytes: m.media.size, seconds: m.media.duration };
  const absent = media && media.status !== 'ready';
  const shown = { ...m, media, deleted: m.status === 'DELETED', links: linksIn(m.body), codes: [], votes: [], absent: absent
    ? media.status : '' };
  const has = m.poll || (media && !absent) || m.location || m.contacts?.length;
  return has || shown.deleted ? shown
    : { ...shown, type: 'text', body: m.body || t(m.type === 'text' ? 'textErased' : 'noText', { type: kindName(m.type) }) };
}

/** The web addresses in a text, in their order. */
const linksIn = (text) => (text.match(/\bhttps?:\/\/[^\s<>"]+[^\s<>"'.,;:!?)\]*_~]/g) || []).filter((link) => URL.canParse(link))
  .slice(0, 50);

// Of all that looks like a code, what very likely is one: digits of an order are not worth a button.
const likelyCodes = (m) => (masked.value ? []
  : m.codes.filter((code) => code.length > 5 || /\b(code|kode|otp|pin|sandi|token|senha|código)\b/i.test(m.body) || m.body.trim() === code)
  .slice(0, 3));

/**
 * m: the message. own: on the right. author: who wrote it, for screen readers, and for all with named. quote: {who, text} of what it
 * answers, empty if that is not known. file(m) fetches its file. vote(options), onReply, onReact(emoji) and onDelete do something;
 * without onOpen(id) it is only looked at. note: a line below the text. Children are further actions.
 */
export function Bubble({ m, own, author, named, quote, onQuote, file, status, vote, open, onOpen, onReply, onReact, onDelete, note, marked,
  children }) {
  const has = m.media || m.location || m.contacts?.length > 0;
  const Carried = has && !m.deleted && !m.absent && carried[m.type];
  const codes = own ? [] : likelyCodes(m);
  return html`<div class=${classes('bubble', own ? 'own' : 'theirs', m.deleted && 'deleted', marked && 'marked')} data-id=${m.id}>
    ${named ? html`<b class="author clip"><bdi>${author}</bdi></b>` : html`<span class="sr">${author}: </span>`}
    ${quote && !m.deleted && html`<${Quote} quote=${quote} onClick=${onQuote} />`}
    ${Carried && html`<${Carried} m=${m} file=${file} />`}
    ${m.deleted ? html`<em>${t('deleted')}</em>` : m.poll ? html`<${Poll} m=${m} vote=${vote} />` : !/^(location|contact)$/.test(m.type) &&
      m.body && html`<${Text} m=${m} />`}
    ${m.absent && html`<span class="muted">${t(`media.${m.absent}`)}</span>`}
    ${m.preview && html`<${Preview} preview=${m.preview} />`}
    ${codes.length > 0 && html`<div class="row">
      ${codes.map((code) => html`<${Copy} key=${code} small text=${code} what=${code}>${core('copy', { what: code })}<//>`)}</div>`}
    ${note}
    <div class="bubble-foot">
      ${m.reactions.length > 0 && html`<span class="reactions" aria-label=${t('reactions')} role="img">
        ${m.reactions.slice(0, 8).join(' ')}</span>`}
      ${m.copies > 1 ? html`<${Badge} tone="warn">${t('copies', { n: m.copies })}<//>`
        : m.possible_duplicate && html`<${Badge} tone="warn">${t('perhapsTwice')}<//>`}
      ${m.edited_at && !m.deleted && html`<span title=${full(m.edited_at)}>${core('edited')}</span>`}
      <time datetime=${m.timestamp} title=${full(m.timestamp)}>${clock(m.timestamp).slice(0, 5)}</time>
      ${own && html`<${Tick} word=${false} status=${status} at=${m.updated_at} />`}
      ${onOpen && html`<${IconButton} small icon="more" ...${Actions.near} label=${t('more', { text: excerpt(m).slice(0, 40) })}
        aria-expanded=${String(Boolean(open))} onClick=${() => onOpen(open ? '' : m.message_id)} />`}
    </div>
    ${open && html`<${Actions} m=${m} onReply=${onReply} onReact=${onReact} onDelete=${onDelete}>${children}<//>`}
  </div>`;
}

// What a message carries besides text is drawn by code that comes with the first message that has it. Until then it has its room.
const heights = { voice: 36, file: 42, location: 143, poll: 42 };

function Room({ m }) {
  const { width, height } = m.media || {};
  return html`<div class="picture" style=${heights[m.type] ? { height: `${heights[m.type] + 36 * (m.poll?.options.length || 0)}px` }
    : { aspectRatio: width && height ? `${width} / ${height}` : '4 / 3' }} />`;
}

const Picture = lazy(() => import('./media_picture.js').then((module) => module.Picture), Room);
const carried = {
  image: Picture,
  sticker: Picture,
  voice: lazy(() => import('./media_sound.js').then((module) => module.Voice), Room),
  video: lazy(() => import('./media_sound.js').then((module) => module.Film), Room),
  file: lazy(() => import('./media_document.js').then((module) => module.Document), Room),
  location: lazy(() => import('./media_place.js').then((module) => module.Place), Room),
  contact: lazy(() => import('./media_cards.js').then((module) => module.Cards), Room),
};
const Poll = lazy(() => import('./media_poll.js').then((module) => module.Poll), Room);

function Quote({ quote: { who, text }, onClick }) {
  const inner = text === undefined ? t('quotedGone') : html`${who && html`<b>${who}</b>`}<bdi class="clip">${text}</bdi>`;
  return html`<blockquote class="quoted">${onClick ? html`<button type="button" onClick=${onClick}>${inner}</button>` : inner}
    </blockquote>`;
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
    <span><b class="clip"><bdi>${mask(title || url)}</bdi></b>
      ${description && html`<span class="muted"><bdi>${mask(description)}</bdi></span>`}
    <span class="muted row nowrap"><${Icon} name="link" size=${14} />${URL.canParse(url) && new URL(url).host}</span></span></a>`;
}

/** The name of the sender of a message: a person at the console, or a token. */
export const senderName = (by) => by.name || (by.role ? texts('core')(`role.${by.role}`) : by.id);
