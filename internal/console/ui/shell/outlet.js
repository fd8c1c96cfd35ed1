// Shows the page of the address. Its code comes when it is first wanted; until then the old page stays.
import { html, useState, useEffect, useRef, useErrorBoundary, stylesReady } from '../view.js';
import { matched, route } from '../router.js';
import { liveReady } from '../live.js';
import { texts, textsReady } from '../i18n.js';
import { Note, Loading } from '../parts/card.js';
import { Button } from '../parts/button.js';

const t = texts('core');

export function Outlet() {
  const wanted = matched.value;
  const [shown, setShown] = useState({});
  const first = useRef(true);
  const load = async () => {
    try {
      const [page] = await Promise.all([wanted.load(), wanted.bare || liveReady]);
      await Promise.all([stylesReady(), textsReady()]);
      if (matched.peek().name === wanted.name) setShown({ name: wanted.name, Page: page.default });
    } catch (error) {
      console.error(error);
      setShown({ name: wanted.name, failed: true });
    }
  };
  useEffect(() => { if (shown.name !== wanted.name) load(); }, [wanted.name]);
  // Somebody who does not see the page change is told where they are: its heading gets the focus.
  useEffect(() => {
    if (!shown.name) return;
    if (!first.current && !document.activeElement?.closest('.drawer,dialog')) document.querySelector('main h1')?.focus({ preventScroll: true });
    first.current = false;
  }, [shown.name]);

  if (shown.failed) return html`<${Note} kind="bad" title=${t('pageNotLoaded')}><${Button} small onClick=${() => location.reload()}>${t('reload')}<//><//>`;
  if (!shown.Page) return html`<${Loading} rows=${5} />`;
  // For a moment after a click the old page is still there: it keeps the route that it knows.
  return html`<${Guard} key=${shown.name} Page=${shown.Page} name=${shown.name} />`;
}

function Guard({ Page, name }) {
  const [error] = useErrorBoundary((problem) => console.error(problem));
  const last = useRef(route.value);
  if (route.value.name === name) last.current = route.value;
  if (error) return html`<${Note} kind="bad" title=${t('pageBroke')}>${error.message} <${Button} small onClick=${() => location.reload()}>${t('reload')}<//><//>`;
  return html`<${Page} route=${last.current} />`;
}
