// Why a message failed, and what to do.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { Note } from '../parts/card.js';
import { Time, Said } from '../parts/time.js';

const t = texts('messages');
const core = texts('core');

export function Why({ m }) {
  const { code = 'refused', message = '', until } = m.error || {};
  return html`<${Note} kind="bad" title=${t(`why.${code}`)}>
    <p><${Said} text=${message} /> <code>${code}</code></p>
    ${until && html`<p>${t('until', { time: html`<${Time} at=${until} ago />` })}</p>`}
    <p><b>${t('remedy')}</b> ${t(`do.${code}`)} <a href="/docs" target="_blank" rel="noopener">${core('docs')}</a></p>
  <//>`;
}
