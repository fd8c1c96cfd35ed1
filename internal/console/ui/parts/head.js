// The head of a page: its name, the sentence that answers, and what can be done.
import { html, useEffect } from '../view.js';
import { title } from '../shell/title.js';
import { Icon } from './icon.js';
import { texts } from '../i18n.js';

const t = texts('core');

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
