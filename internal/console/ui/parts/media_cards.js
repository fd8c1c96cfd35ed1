// The contact cards of a message.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Copy } from './button.js';
import { Icon } from './icon.js';
import { mask } from './who.js';

const t = texts('phone');

// The numbers of a vCard, as their sender wrote them.
const numbersIn = (vcard) => [...vcard.matchAll(/^(?:item\d+\.)?TEL[^:\n]*:(.+)$/gim)].map(([, text]) => text.trim()).slice(0, 5);

export function Cards({ m }) {
  return html`<ul class="cards" aria-label=${t('kind.contact')}>
    ${m.contacts.slice(0, 20).map((card, i) => html`<li key=${i}><${Icon} name="user" size=${20} />
    <span class="grow"><bdi class="clip">${mask(card.name || t('kind.contact'))}</bdi>
      ${numbersIn(card.vcard).map((one) => html`<bdi class="muted clip">${mask(one)}</bdi>`)}</span>
    <${Copy} text=${card.vcard} what="vCard" /></li>`)}</ul>`;
}
