// The frame of every page: band, top bar, rail, pinned phone, and overlays.
import { html, useState, useEffect, classes, useRef, useErrorBoundary } from '../view.js';
import { route, matched } from '../router.js';
import { pinned, sandboxOnly, sandboxes } from '../state.js';
import { Toasts } from './toasts.js';
import { Questions } from '../parts/dialog.js';
import { Band, TopBar, Gone } from './topbar.js';
import { Rail, BottomBar } from './rail.js';
import { Palette, Help } from './palette.js';
import { texts, textsReady } from '../i18n.js';
import { liveReady } from '../live.js';
import { Note, Loading } from '../parts/card.js';
import { Button } from '../parts/button.js';

const t = texts('core');

export function Shell() {
  const { bare, query, name } = route.value;
  // A phone in a window of its own, beside the program under test, has no need for the rest.
  if (bare || query.window) {
    return html`<div class="bare">${!bare && html`<${Band} />`}<main id="main"><${Outlet} /></main><${Toasts} /><${Questions} /></div>`;
  }
  const docked = pinned.value && !/^(phone|otp)$/.test(name) && sandboxes.value.length > 0;
  return html`
    <a class="skip" href="#main">${t('skip')}</a>
    <div class=${classes('shell', docked && 'docked')}>
      <${Band} />
      <${TopBar} />
      <${Rail} />
      <main id="main" tabindex="-1"><${Gone} /><${Outlet} /></main>
      ${docked && html`<${Dock} />`}
      <${BottomBar} />
    </div>
    <${Palette} /><${Help} /><${Toasts} /><${Questions} />`;
}

// The phone comes with its page's code, when it is first wanted.
function Dock() {
  const [panel, setPanel] = useState(null);
  useEffect(() => { import('../pages/phone.js').then((page) => setPanel(() => page.PhonePanel), () => {}); }, []);
  return html`<aside class="dock" aria-label=${t('page.phone')} data-sandbox=${sandboxOnly.value}>
    ${panel && html`<${panel} docked />`}</aside>`;
}

// Shows the page of the address. Its code is loaded on first use; until then the old page stays.

function Outlet() {
  const wanted = matched.value;
  const [shown, setShown] = useState({});
  const first = useRef(true);
  const load = async () => {
    try {
      const [page] = await Promise.all([wanted.load(), wanted.bare || liveReady]);
      await textsReady();
      if (matched.peek().name === wanted.name) setShown({ name: wanted.name, Page: page.default });
    } catch (error) {
      console.error(error);
      setShown({ name: wanted.name, failed: true });
    }
  };
  useEffect(() => { if (shown.name !== wanted.name) load(); }, [wanted.name]);
  // The heading gets the focus, so that screen readers announce the new page.
  useEffect(() => {
    if (!shown.name) return;
    if (!first.current && !document.activeElement?.closest('.drawer,dialog')) document.querySelector('main h1')?.focus({
      preventScroll: true });
    first.current = false;
  }, [shown.name]);

  if (shown.failed) return html`<${Note} kind="bad" title=${t('pageNotLoaded')}><${Button} small onClick=${() => location.reload()}>
    ${t('reload')}<//><//>`;
  if (!shown.Page) return html`<${Loading} rows=${5} />`;
  // For a moment after a click the old page is still there: it keeps the route that it knows.
  return html`<${Guard} key=${shown.name} Page=${shown.Page} name=${shown.name} />`;
}

function Guard({ Page, name }) {
  const [error] = useErrorBoundary((problem) => console.error(problem));
  const last = useRef(route.value);
  if (route.value.name === name) last.current = route.value;
  if (error) return html`<${Note} kind="bad" title=${t('pageBroke')}>${error.message} <${Button} small onClick=${() => location.reload()}>
    ${t('reload')}<//><//>`;
  return html`<${Page} route=${last.current} />`;
}
