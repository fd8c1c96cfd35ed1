// Components whose code is fetched when they are first shown, so that a page appears without it.
import { html, useState, useEffect } from '../view.js';
import { texts } from '../i18n.js';
import { Loading } from './card.js';
import { toast } from './toast.js';

const t = texts('core');

/**
 * A component that load() resolves to. While its code is on its way, its place is held: by so many lines, or by a component
 * that gets the same props. What opens it takes ...near: then the code is fetched as soon as the pointer or the focus is there.
 */
export function lazy(load, place = 0) {
  let Loaded;
  let loading;
  const fetch = () => loading ||= load().then((component) => { Loaded = component; }).catch((error) => {
    loading = undefined; // the next one that is shown tries again
    throw error;
  });
  const preload = () => { fetch().catch(() => {}); };
  function Lazy(props) {
    const [, setReady] = useState(false);
    const late = !Loaded; // when this was drawn: it may be there before the effect runs
    useEffect(() => {
      if (late) fetch().then(() => setReady(true), () => toast(t('pageNotLoaded'), { kind: 'bad' }));
    }, []);
    const Shown = Loaded || (typeof place === 'function' && place);
    return Shown ? html`<${Shown} ...${props} />` : place > 0 && html`<${Loading} rows=${place} />`;
  }
  Lazy.near = { onPointerOver: preload, onFocusInCapture: preload };
  return Lazy;
}
