// The document of a message.
import { html } from '../view.js';
import { bytes, texts } from '../i18n.js';
import { Button } from './button.js';
import { Icon } from './icon.js';
import { mask } from './who.js';

const t = texts('phone');

export function Document({ m, file }) {
  const { filename, bytes: size } = m.media;
  const download = async () => {
    const url = URL.createObjectURL(await file(m));
    Object.assign(document.createElement('a'), { href: url, download: filename || 'file' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return html`<div class="document"><${Icon} name="file" size=${24} /><span class="grow"><bdi class="clip">
    ${mask(filename || t('kind.file'))}</bdi>
    <span class="muted">${bytes(size)}</span></span><${Button} small icon="download" aria-label=${t('download', { name: filename })}
      onClick=${download} /></div>`;
}
