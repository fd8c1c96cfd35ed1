// Tabs: links where each has an address, else an ARIA tab list.
import { html, useEffect, useRef } from '../view.js';

export function Tabs({ label, tabs, current, onPick, small }) {
  const box = useRef();
  // On a small screen not all fit: the current one is brought into view.
  useEffect(() => {
    const { current: nav } = box;
    const tab = nav.querySelector('[aria-current],[aria-selected=true]');
    if (tab) nav.scrollLeft = Math.max(Math.min(nav.scrollLeft, tab.offsetLeft - nav.offsetLeft),
      tab.offsetLeft - nav.offsetLeft + tab.offsetWidth - nav.clientWidth);
  }, [current]);
  const inner = (tab) => html`${tab.label}${tab.count != null && html` <span class="count">${tab.count}</span>`}`;
  if (tabs[0]?.href) {
    return html`<nav class="tabs" aria-label=${label} ref=${box}>${tabs.map((tab) => html`
      <a key=${tab.id} href=${tab.href} aria-current=${tab.id === current ? 'page' : undefined}>${inner(tab)}</a>`)}</nav>`;
  }
  const arrow = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (tabs.findIndex((tab) => tab.id === current) + step + tabs.length) % tabs.length;
    onPick(tabs[next].id);
    box.current.children[next].focus();
  };
  return html`<div class="tabs ${small ? 'small' : ''}" role="tablist" aria-label=${label} ref=${box} onKeyDown=${arrow}>
    ${tabs.map((tab) => html`
    <button key=${tab.id} type="button" role="tab" aria-selected=${String(tab.id === current)} tabindex=${tab.id === current ? 0 : -1}
      onClick=${() => onPick(tab.id)}>${inner(tab)}</button>`)}</div>`;
}

export const TabPanel = ({ label, children }) => html`<div role="tabpanel" aria-label=${label} tabindex="0">${children}</div>`;
