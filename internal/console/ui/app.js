// The console begins here.
import { html, render, effect, useEffect } from './view.js';
import { address, matched, route, routes, go } from './router.js';
import { pages } from './routes.js';
import { signIn } from './api.js';
import { live, startLive } from './live.js';
import { startState, isOffered, role, masked, paletteOpen, helpOpen } from './state.js';
import { startChecklist } from './checklist.js';
import { useKeys } from './keys.js';
import { startTitle } from './shell/title.js';
import { Shell } from './shell/shell.js';
import { texts, textsReady } from './i18n.js';

const t = texts('core');

function App() {
  const palette = () => { paletteOpen.value = !paletteOpen.value; };
  useKeys([
    ['?', t('keys.help'), () => { helpOpen.value = true; }],
    ['mod+k', t('keys.palette'), palette],
    ['/', t('keys.search'), search],
    ['.', t('keys.mask'), () => { masked.value = !masked.value; }],
    ...pages.filter((entry) => entry.key && isOffered(entry))
      .map((entry) => [`g ${entry.key}`, t('keys.go', { page: t(`page.${entry.name}`) }), () => go(address(entry))]),
  ], 'general');
  // The palette closes by the key that opened it.
  useEffect(() => {
    const close = (event) => {
      if (!paletteOpen.value || event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      paletteOpen.value = false;
    };
    addEventListener('keydown', close, true);
    return () => removeEventListener('keydown', close, true);
  }, []);
  return html`<${Shell} />`;
}

// A page with a filter is searched by it; elsewhere everything is.
function search() {
  const input = document.querySelector('main [data-search]');
  if (input) { input.focus(); input.select(); } else paletteOpen.value = true;
}

routes.value = pages;
if (role.value === 'support' && matched.value.name === 'overview') go('/conversations', {}, { replace: true }); // where support works
startTitle();

// The sign-in page needs nothing from the server; everything else does, once.
let started = false;
effect(() => {
  if (route.value.bare || started) return;
  started = true;
  startLive();
  startState();
  startChecklist();
});
effect(() => { if (live.value.state === 'signed-out') signIn(); });

const root = document.getElementById('app') || document.body.appendChild(Object.assign(document.createElement('div'), { id: 'app' }));
textsReady().catch(() => {}).then(() => render(html`<${App} />`, root));
