// The credentials of a channel's account, for networks that need some: fields, and what is sent of them.
import { html } from '../view.js';
import { Field } from './form.js';
import { texts } from '../i18n.js';

const t = texts('account');

/** What people call a network. */
export const networkTitle = (network) => (t.has(`network.${network?.name}`) ? t(`network.${network.name}`) : network?.title);

const types = { id: 'text', secret: 'password', url: 'url', choice: 'select' };

/** Fields of a form for the credentials that a network needs. isNew: all of them; else those that stay empty do not change. */
export const AccountFields = ({ form, network, isNew }) => network?.credentials.filter(({ choices }) => !isNew || !choices)
  .map(({ name, kind, choices }) => html`
  <${Field} key=${name} form=${form} name=${name} path=${`${network.name}.${name}`} label=${t(`label.${name}`)} hint=${t(`hint.${name}`)}
    type=${types[kind]} options=${choices && [['', t('asBefore')], ...choices.map((one) => [one, t(`${name}.${one}`)])]}
    required=${isNew && kind !== 'url'} autocomplete=${kind === 'secret' ? 'new-password' : 'off'} spellcheck=${false}
    class=${choices ? '' : 'mono'} />`);

/** What a request has of them. shown: a person reads it, so the secrets are left out. */
export function toAccount(values, network, shown) {
  if (!network?.credentials.length) return {};
  const given = network.credentials.map(({ name, kind }) => [name, shown && kind === 'secret' ? '…' : (values[name] || '').trim()]);
  return { [network.name]: Object.fromEntries(given.filter(([, value]) => value)) };
}
