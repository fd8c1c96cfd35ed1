// The list of keys that work here.
import { html } from '../view.js';
import { helpOpen, shortcuts } from '../state.js';
import { active, keyName, useKeys } from '../keys.js';
import { texts } from '../i18n.js';
import { Button } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';

const t = texts('core');

export function Keys({ name }) {
  return html`<span class="keys">${name.split(' ').map((key) => html`<kbd key=${key}>${keyName(key)}</kbd>`)}</span>`;
}

function KeyList() {
  const groups = ['page', 'drawer', 'general'].map((group) => [group, active.value.filter(([, , its]) => its === group)])
    .filter(([, list]) => list.length);
  return html`${!shortcuts.value && html`<p class="muted">${t('keys.off')}</p>`}
    <div class="grid2">${groups.map(([group, list]) => html`<section key=${group}>
      <h3>${t(`keys.${group}`)}</h3>
      <dl class="key-list">${list.map(([name, what]) => html`<div key=${name}><dt>${what}</dt><dd><${Keys} name=${name} /></dd>
        </div>`)}</dl>
    </section>`)}</div>`;
}

export function HelpDialog() {
  const close = () => { helpOpen.value = false; };
  return html`<${Dialog} wide open title=${t('help')} onClose=${close} foot=${html`
      <${Button} onClick=${() => { shortcuts.value = !shortcuts.value; }}>${shortcuts.value ? t('shortcutsOff') : t('shortcutsOn')}<//>`}>
    <${Closing} close=${close} /><${KeyList} />
  <//>`;
}

// The key that opened the list closes it.
function Closing({ close }) {
  useKeys([['?', '', close]], 'dialog');
  return null;
}
