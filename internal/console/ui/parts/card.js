// Surfaces: cards, tiles with a number, facts, notes, and the three states of a list that is not there.
import { html, classes, useEffect } from '../view.js';
import { Icon } from './icon.js';
import { Button } from './button.js';
import { texts } from '../i18n.js';
import { title } from '../shell/title.js';

const t = texts('core');

export function Card({ title, actions, children, class: name, ...rest }) {
  return html`<section class=${classes('card', name)} ...${rest}>
    ${(title || actions) && html`<div class="card-head"><h2>${title}</h2><div class="row">${actions}</div></div>`}
    ${children}
  </section>`;
}

/** A number, a word and where to see more. tone: good, bad, warn. */
export function Tile({ value, label, sub, href, tone }) {
  const inner = html`<span class="tile-value">${value}</span><span class="tile-label">${label}</span>
    ${sub && html`<span class="tile-sub">${sub}</span>`}`;
  const name = classes('tile', tone);
  return href ? html`<a class=${name} href=${href}>${inner}</a>` : html`<div class=${name}>${inner}</div>`;
}

/** Terms and values; rows without a value are left out. */
export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter(([, value]) => value != null && value !== '' && value !== false).map(([term, value]) => html`
    <div key=${term}><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Empty({ title, text, icon, children }) {
  return html`<div class="empty">
    ${icon && html`<${Icon} name=${icon} size=${28} />`}
    <p class="empty-title">${title}</p>
    ${text && html`<p class="muted">${text}</p>`}
    ${children && html`<div class="row">${children}</div>`}
  </div>`;
}

/** kind: info, good, warn, bad. */
export function Note({ kind = 'info', title, children }) {
  return html`<div class="note ${kind}" role=${kind === 'bad' ? 'alert' : undefined}>
    <${Icon} name=${kind} /><div>${title && html`<strong>${title}</strong> `}${children}</div>
  </div>`;
}

/** Says which role is missing. */
export const NeedsRole = ({ role }) => html`<${Note}>${t('needsRole', { role: t(`role.${role}`) })}<//>`;

export const Loading = ({ rows = 3 }) =>
  html`<div class="loading" role="status" aria-label=${t('loading')}>${Array.from({ length: rows }, (_, i) => html`<i key=${i} />`)}</div>`;

/** A load that failed, with the way to try again. */
export function Failed({ load }) {
  return html`<${Note} kind="bad" title=${t('notLoaded')}>
    ${load.error.status ? html`<bdi lang="en">${load.error.message}</bdi>` : t('noAnswer')} <${Button} small onClick=${load.reload}>
      ${t('again')}<//>
  <//>`;
}

// The head of a page: its name, the sentence that answers, and what can be done.

export function Head({ title: words, lead, actions, back, children }) {
  const plain = typeof words === 'string' ? words : '';
  useEffect(() => { if (plain) title.value = plain; }, [plain]);
  return html`
    <header class="head">
      <div>
        ${back && html`<a class="back" href=${back.href}><${Icon} name="left" size=${16} />${back.label || t('back')}</a>`}
        <h1 tabindex="-1"><bdi>${words}</bdi></h1>
        ${lead && html`<p class="lead">${lead}</p>`}
        ${children}
      </div>
      ${actions && html`<div class="row actions">${actions}</div>`}
    </header>`;
}
