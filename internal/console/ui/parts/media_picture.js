// The picture or sticker of a message.
import { html, useState, useEffect, useRef } from '../view.js';
import { texts } from '../i18n.js';
import { Gone, useFile } from './media_file.js';
import { mask } from './who.js';

const t = texts('phone');

export function Picture(where) {
  const box = useRef();
  const [near, setNear] = useState(false);
  const [broken, setBroken] = useState(false); // a file that is no picture
  // A long chat fetches only what comes into view.
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => { if (entry.isIntersecting) { setNear(true); watch.disconnect(); } },
      { rootMargin: '300px' });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const { url, failed } = useFile(where, near);
  const { width, height, filename } = where.m.media;
  return html`<div class="picture" ref=${box} style=${{ aspectRatio: width && height ? `${width} / ${height}` : '4 / 3' }}>
    ${failed || broken ? html`<${Gone} />`
      : url && html`<img src=${url} alt=${mask(where.m.body || filename || t(`kind.${where.m.type}`))}
        onError=${() => setBroken(true)} />`}</div>`;
}
