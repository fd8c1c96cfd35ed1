// An address without a page, and the page that was perhaps meant.
import { html } from '../view.js';
import { href, routes } from '../router.js';
import { isOffered } from '../state.js';
import { Head } from '../parts/card.js';
import { texts } from '../i18n.js';

const t = texts('notfound');
const core = texts('core');

export default function Page({ route }) {
  const typed = route.at.split('/')[1].toLowerCase();
  const [nearest] = routes.value.filter((entry) => entry.icon && isOffered(entry))
    .map((entry) => ({ entry, far: Math.min(distance(typed, entry.path.split('/')[1]),
      distance(typed, core(`page.${entry.name}`).toLowerCase())) }))
    .sort((a, b) => a.far - b.far);
  const link = html`<a href=${href(nearest.entry.path.replace(/\/:.*/, ''))}>${core(`page.${nearest.entry.name}`)}</a>`;
  // Half of the letters wrong is no spelling mistake any more.
  const near = nearest.far <= Math.max(2, typed.length / 2);
  return html`<${Head} title=${t('title')}
    lead=${near ? t('meant', { page: link }) : t('none', { page: html`<a href=${href('/')}>${core('page.overview')}</a>` })} />`;
}

// The Levenshtein distance: how many letters differ, are missing or are too many.
function distance(a, b) {
  let row = [...b].reduce((list, _, i) => [...list, i + 1], [0]);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) next.push(Math.min(next[j] + 1, row[j + 1] + 1, row[j] + (a[i] === b[j] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}
