// The file of a message. It is fetched with the session and shown from memory.
import { html, useState, useEffect } from '../view.js';
import { texts } from '../i18n.js';

const t = texts('phone');

/** The address of a message's file in memory, from when wanted is true until the component goes. */
export function useFile({ m, file }, wanted) {
  const [state, set] = useState({});
  useEffect(() => {
    if (!wanted) return undefined;
    let url = '';
    let there = true;
    file(m).then((blob) => {
      if (there) set({ url: url = URL.createObjectURL(blob) });
    }, () => there && set({ failed: true }));
    return () => { there = false; if (url) URL.revokeObjectURL(url); };
  }, [wanted]);
  return state;
}

export const Gone = () => html`<span class="muted">${t('fileGone')}</span>`;
