// The list of keys that work here.
import { html, signal } from '../view.js';
import { active, keyName, useKeys } from '../keys.js';
import { shortcuts } from '../state.js';
import { Dialog } from '../parts/dialog.js';
import { Button } from '../parts/button.js';
import { texts } from '../i18n.js';

const t = texts('core');

export const helpOpen = signal(false);

export function Keys({ name }) {
  return html`<span class="keys">${name.split(' ').map((key) => html`<kbd key=${key}>${keyName(key)}</kbd>`)}</span>`;
}

export function Help() {
  const close = () => { helpOpen.value = false; };
  return html`<${Dialog} wide open=${helpOpen.value} title=${t('help')} onClose=${close} foot=${html`
      <${Button} onClick=${() => { shortcuts.value = !shortcuts.value; }}>${shortcuts.value ? t('shortcutsOff') : t('shortcutsOn')}<//>`}>
    <${List} close=${close} />
  <//>`;
}

function List({ close }) {
  useKeys([['?', '', close]], 'dialog');
  const groups = ['page', 'drawer', 'general'].map((group) => [group, active.value.filter(([, , its]) => its === group)]).filter(([, list]) => list.length);
  return html`${!shortcuts.value && html`<p class="muted">${t('keys.off')}</p>`}
    <div class="grid2">${groups.map(([group, list]) => html`<section key=${group}>
      <h3>${t(`keys.${group}`)}</h3>
      <dl class="key-list">${list.map(([name, what]) => html`<div key=${name}><dt>${what}</dt><dd><${Keys} name=${name} /></dd></div>`)}</dl>
    </section>`)}</div>`;
}
