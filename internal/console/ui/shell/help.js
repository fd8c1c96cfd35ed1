// The list of keys that work here.
import { html } from '../view.js';
import { shortcuts } from '../state.js';
import { active, keyName } from '../keys.js';
import { texts } from '../i18n.js';

const t = texts('core');

export function Keys({ name }) {
  return html`<span class="keys">${name.split(' ').map((key) => html`<kbd key=${key}>${keyName(key)}</kbd>`)}</span>`;
}

export function KeyList() {
  const groups = ['page', 'drawer', 'general'].map((group) => [group, active.value.filter(([, , its]) => its === group)])
    .filter(([, list]) => list.length);
  return html`${!shortcuts.value && html`<p class="muted">${t('keys.off')}</p>`}
    <div class="grid2">${groups.map(([group, list]) => html`<section key=${group}>
      <h3>${t(`keys.${group}`)}</h3>
      <dl class="key-list">${list.map(([name, what]) => html`<div key=${name}><dt>${what}</dt><dd><${Keys} name=${name} /></dd>
        </div>`)}</dl>
    </section>`)}</div>`;
}
