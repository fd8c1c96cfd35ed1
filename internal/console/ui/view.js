// Everything a component is made of, from one place: markup, hooks, signals.
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

/** Joins the class names that are true. */
export const classes = (...names) => names.filter(Boolean).join(' ');
