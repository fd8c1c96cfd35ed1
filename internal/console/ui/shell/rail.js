// Where one can go: a rail at the left, and on small screens a bar of five at the foot.
import { html, useState, classes, boot } from '../view.js';
import { address, route, routes } from '../router.js';
import { server, isOffered, role, theme, setTheme, lang, setLang, languages, helpOpen } from '../state.js';
import { Icon } from '../parts/icon.js';
import { IconButton } from '../parts/button.js';
import { Dialog } from '../parts/dialog.js';
import { HelpDialog } from './palette.js';
import { texts } from '../i18n.js';

const t = texts('core');

const isFirst = (entry) => role.value === 'support' && entry.name === 'conversations';
const main = () => routes.value.filter((entry) => entry.rail && isOffered(entry)).sort((a, b) => isFirst(b) - isFirst(a));
const isCurrent = (entry) => entry.name === route.value.name || entry.name === route.value.within;

const Item = ({ entry, short, onClick }) =>
  html`<a class="rail-item" href=${address(entry)} onClick=${onClick} aria-current=${isCurrent(entry) ? 'page' : undefined}>
  <${Icon} name=${entry.icon} size=${20} /><span>${short && t.has(`short.${entry.name}`) ? t(`short.${entry.name}`)
    : t(`page.${entry.name}`)}</span></a>`;

const settings = () => routes.value.filter((entry) => entry.name === 'settings' && isOffered(entry));
const themes = ['auto', 'light', 'dark'];
const themeIcons = { auto: 'auto', light: 'sun', dark: 'moon' };

export function Rail() {
  const nextTheme = themes[(themes.indexOf(theme.value) + 1) % themes.length];
  return html`<nav class="rail" aria-label=${t('pages')}>
    <div class="rail-main">${main().map((entry) => html`<${Item} key=${entry.name} entry=${entry} />`)}</div>
    <div class="rail-foot">
      ${settings().map((entry) => html`<${Item} key=${entry.name} entry=${entry} />`)}
      <${LanguagePicker} />
      <div class="row">
        <${IconButton} icon=${themeIcons[theme.value] || 'auto'} label="${t('theme')}: ${t(`theme.${theme.value}`)}"
          onClick=${() => setTheme(nextTheme)} />
        <${IconButton} icon="help" label="${t('help')} (?)" ...${HelpDialog.near} onClick=${() => { helpOpen.value = true; }} />
        <span class="muted version clip" title=${boot.version || server.value?.version}>${boot.version || server.value?.version}</span>
      </div>
    </div>
  </nav>`;
}

export const LanguagePicker = () => html`<label class="language"><${Icon} name="language" size=${20} /><span class="sr">
  ${t('language')}</span>
  <select value=${lang.value} onChange=${(event) => setLang(event.target.value)}>${Object.entries(languages).map(([code, name]) => html`
    <option key=${code} value=${code} lang=${code} selected=${code === lang.value}>${name}</option>`)}</select></label>`;

/** The first four pages and the way to the others. */
export function BottomBar() {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  const others = [...main().slice(4), ...settings()];
  return html`<nav class="bottom-bar" aria-label=${t('pages')}>
      ${main().slice(0, 4).map((entry) => html`<${Item} short key=${entry.name} entry=${entry} />`)}
      <button type="button" class=${classes('rail-item', others.some(isCurrent) && 'on')} aria-haspopup="dialog"
        onClick=${() => setOpen(true)}><${Icon} name="more" size=${20} /><span>${t('more')}</span></button>
    </nav>
    <${Dialog} open=${open} title=${t('more')} onClose=${close}>
      <div class="more-list">${others.map((entry) => html`<${Item} key=${entry.name} entry=${entry} onClick=${close} />`)}</div>
      <div class="row"><${LanguagePicker} />
        ${themes.map((name) => html`<${IconButton} key=${name} icon=${themeIcons[name]} label="${t('theme')}: ${t(`theme.${name}`)}"
          pressed=${theme.value === name} onClick=${() => setTheme(name)} />`)}</div>
    <//>`;
}
