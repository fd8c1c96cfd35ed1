// What stands around every page: band, top bar, rail, the pinned phone, and what floats above.
import { html, useState, useEffect, classes } from '../view.js';
import { route } from '../router.js';
import { pinned, sandboxOnly, channels } from '../state.js';
import { Toasts } from '../parts/toasts.js';
import { Questions } from '../parts/dialog.js';
import { Band, TopBar, Gone } from './topbar.js';
import { Rail, BottomBar } from './rail.js';
import { Palette } from './palette.js';
import { Help } from './help.js';
import { Outlet } from './outlet.js';
import { texts } from '../i18n.js';

const t = texts('core');

export function Shell() {
  const { bare, query, name } = route.value;
  // A phone in a window of its own, beside the program under test, has no need for the rest.
  if (bare || query.window) {
    return html`<div class="bare">${!bare && html`<${Band} />`}<main id="main"><${Outlet} /></main><${Toasts} /><${Questions} /></div>`;
  }
  const docked = pinned.value && !/^(phone|otp)$/.test(name) && channels.value.some((channel) => channel.network === 'sandbox');
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
  return html`<aside class="dock" aria-label=${t('page.phone')} data-sandbox=${sandboxOnly.value}>${panel && html`<${panel} docked />`}</aside>`;
}
