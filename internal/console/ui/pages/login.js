// Signing in by a link that works once. Its secret is in the fragment, which never reaches a log.
import { html, useState, useEffect, useId } from '../view.js';
import { title } from '../shell/title.js';
import { LanguagePicker } from '../shell/rail.js';
import { Button } from '../parts/button.js';
import { confirm } from '../parts/dialog.js';
import { Note } from '../parts/card.js';
import { Code } from '../parts/code.js';
import { toasts } from '../parts/toast.js';
import { texts } from '../i18n.js';

const t = texts('login');
const core = texts('core');

// Why a link is refused, by the code of the error.
const problems = { conflict: 'used', token_expired: 'expired', unauthenticated: 'foreign' };

export default function Page({ route }) {
  const [words, setWords] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const id = useId();

  const signIn = async (ticket, replace = false) => {
    setBusy(true);
    setProblem('');
    try {
      const answer = await fetch('/console/session', { method: 'POST', headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ ticket, replace }) });
      if (answer.ok) { location.replace(inside(route.query.next)); return; }
      const { code, message, data } = await answer.json().catch(() => ({}));
      if (code === 'signed_in') {
        if (await instead(data)) await signIn(ticket, true);
        else location.replace(inside(route.query.next));
        return;
      }
      setProblem(problems[code] ? t(problems[code]) : message || t('failed'));
    } catch { setProblem(t('noAnswer')); }
    setBusy(false);
  };

  useEffect(() => {
    title.value = t('title');
    toasts.value = []; // they were about another page
    const take = () => {
      const ticket = location.hash.slice(1);
      if (!ticket) return;
      // The secret leaves the address bar and the history before anything else happens.
      history.replaceState(null, '', location.pathname + location.search);
      signIn(ticket);
    };
    take();
    // A link that is pasted over this very page changes only the fragment: nothing is loaded again.
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);

  const submit = (event) => {
    event.preventDefault();
    const ticket = words.trim().split('#').pop();
    if (ticket) signIn(ticket);
  };
  return html`<div class="sign-in">
    <p class="brand">Parley</p>
    <h1>${t('title')}</h1>
    ${problem ? html`<${Note} kind="bad">${problem}<//>` : route.query.ended && html`<${Note} title=${t('ended')}>${t('endedText')}<//>`}
    <p>${t('how')}</p>
    <${Code} text="parley open" />
    <p class="muted">${t('container')}</p>
    <p class="muted">${t('once')}</p>
    <form class="form" onSubmit=${submit}>
      <div class="field"><label class="label" for=${id}>${t('paste')}</label>
        <input id=${id} type="password" autocomplete="off" value=${words} onInput=${(event) => setWords(event.target.value)} /></div>
      <${Button} kind="primary" type="submit" busy=${busy}>${t('signIn')}<//>
    </form>
    <${LanguagePicker} />
  </div>`;
}

// The link may be of somebody else, and everything done from then on would be under that name.
const instead = ({ name, role }) => confirm({
  title: name ? t('instead', { name: html`<bdi>${name}</bdi>`, role: core(`role.${role}`) })
    : t('insteadRole', { role: core(`role.${role}`) }),
  text: t('insteadText'),
  action: t('signIn'),
});

// Only addresses of the console are gone on to: a link must not lead anywhere else.
const inside = (next) => {
  const to = new URL(next || '/console/', location.origin);
  return to.origin === location.origin && to.pathname.startsWith('/console/') && !to.pathname.startsWith('/console/login')
    ? to.pathname + to.search : '/console/';
};
