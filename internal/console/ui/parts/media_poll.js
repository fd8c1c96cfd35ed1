// The poll of a message.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { mask, Body } from './who.js';

const t = texts('phone');

export function Poll({ m, vote: send }) {
  const { title, options, multiple } = m.poll;
  const vote = (name) => {
    const has = m.votes.includes(name);
    const others = multiple ? m.votes.filter((other) => other !== name) : [];
    return send(has ? others : [...others, name]);
  };
  return html`<div class="poll" role="group" aria-label=${mask(title)}><b><${Body} text=${title} /></b>
    <span class="muted">${t(multiple ? 'pollMany' : 'pollOne')}</span>
    ${options.map(({ name, votes }) => html`<button key=${name} type="button" class="option" aria-pressed=${String(m.votes.includes(name))}
      disabled=${!send} onClick=${() => vote(name)}><i aria-hidden="true" class=${multiple ? '' : 'round'} /><bdi class="grow">${mask(name)}
        </bdi><span class="mono-num">${votes}</span></button>`)}</div>`;
}
