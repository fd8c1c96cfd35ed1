// The window's title and icon. The word comes first, so that it is seen in a narrow tab too.
import { signal, effect } from '../view.js';
import { band } from '../state.js';
import { texts } from '../i18n.js';

const t = texts('core');

/** The name of what is shown; a page's Head sets it. */
export const title = signal('');

export function startTitle() {
  const icon = document.querySelector('link[rel=icon]') || document.head.appendChild(Object.assign(document.createElement('link'),
    { rel: 'icon' }));
  effect(() => {
    const word = { sandbox: t('sandbox'), live: t('real') }[band.value];
    document.title = [word, title.value, 'Parley'].filter(Boolean).join(' · ');
    document.documentElement.dataset.band = band.value;
    icon.href = new URL(`../icon_${band.value}.svg`, import.meta.url);
  });
}
