// Everything a component is made of, from one place: markup, hooks, signals, styles.
import { h, Fragment, render, createContext, toChildArray } from './vendor/preact.js';
import htm from './vendor/htm.js';

export { h, Fragment, render, createContext, toChildArray };
export {
  useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useId, useErrorBoundary,
} from './vendor/hooks.js';
export {
  signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect,
} from './vendor/signals.js';

export const html = htm.bind(h);

/** What the server says in the page itself: base address of the assets, version, mode, language. */
export const boot = JSON.parse(document.querySelector('meta[name=parley]')?.content || '{}');

const sheets = new Map();

/**
 * css loads a page's own stylesheet, once. A page calls it at its top level; the router shows the page
 * when the sheet is there, so that nothing is seen without its styles.
 */
export function css(path) {
  if (sheets.has(path)) return;
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = new URL(path, import.meta.url);
  sheets.set(path, new Promise((done) => { link.onload = link.onerror = done; }));
  document.head.append(link);
}

export const stylesReady = () => Promise.all(sheets.values());

/** Joins the class names that are true. */
export const classes = (...names) => names.filter(Boolean).join(' ');
