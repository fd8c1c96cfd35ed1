// What the list of messages says when it has none.
import { html } from '../view.js';
import { setQuery } from '../router.js';
import { selected } from '../state.js';
import { texts } from '../i18n.js';
import { Empty } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { Curl } from '../parts/as_code.js';

const t = texts('messages');
const core = texts('core');

export function Nothing({ q }) {
  if (q) {
    return html`<${Empty} icon="filter" title=${t('noMatch', { filter: html`<code>${q}</code>` })}
      text=${/status:failed/i.test(q) ? t('goodNews') : ''}>
      <${Button} onClick=${() => setQuery({ q: null })}>${core('clearFilter')}<//><//>`;
  }
  const request = { method: 'POST', path: '/api/send-message/text', headers: selected.value && { 'X-Channel': selected.value },
    body: { contact_id: '6281234567890@c.us', message: t('hello') } };
  return html`<${Empty} icon="messages" title=${t('none')} text=${t('noneText')}>
    <${Curl} request=${request} base=${location.origin} />
    <${Button} need="support" kind="primary" icon="send" onClick=${() => setQuery({ send: '1' })}>${t('sendHere')}<//><//>`;
}
