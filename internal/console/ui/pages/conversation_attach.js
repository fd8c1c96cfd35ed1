// The form of a conversation that sends a file.
import { html, useState, useEffect } from '../view.js';
import { api } from '../api.js';
import { texts, bytes } from '../i18n.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { Icon } from '../parts/icon.js';

const t = texts('conversations');

const toKind = (type) => (/^image\/(jpeg|png|gif|webp)$/.test(type) ? 'image' : type === 'video/mp4' ? 'video'
  : /^audio\/(ogg|opus)/.test(type) ? 'voice' : 'file');

/** A file is uploaded first; the message names it. more: how many files come after it. */
export function Attach({ file, more, channel, send, onSent }) {
  const kind = toKind(file.type);
  const [url, setURL] = useState('');
  useEffect(() => {
    if (kind !== 'image') return undefined;
    const made = URL.createObjectURL(file);
    setURL(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  const form = useForm({ caption: '' }, async ({ caption }) => {
    const disposition = `attachment; filename*=UTF-8''${encodeURIComponent(file.name || 'file')
      .replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`;
    const { data } = await api.post('/media', file, { channel, headers: { 'Content-Disposition': disposition } });
    await send(`/send-message/${kind}`, { file: { url: data.id, filename: file.name || 'file' },
      ...(caption && kind !== 'voice' && { caption }) });
    onSent();
  });
  return html`<${Form} form=${form}>
    ${url ? html`<img class="attached" src=${url} alt=${file.name} />`
      : html`<p class="document"><${Icon} name=${kind === 'file' ? 'file' : kind} size=${24} /><bdi class="grow clip">
        ${file.name}</bdi></p>`}
    <p class="muted">${bytes(file.size)}</p>
    ${more > 0 && html`<p>${t('moreFiles', { n: more })}</p>`}
    ${kind !== 'voice' && html`<${Field} form=${form} name="caption" label=${t('caption')} maxlength="1024" autofocus />`}
    <div class="row"><${Submit} need="support" form=${form} icon="send">${t('send')}<//></div>
  <//>`;
}
