// Where somebody writes in a chat. Enter sends, Shift+Enter begins a new line.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { texts } from '../i18n.js';
import { IconButton } from './button.js';
import { Icon } from './icon.js';
import { toast } from './toast.js';

const core = texts('core');
const t = texts('phone');

// Some keyboards send the new line apart from the key.
const noLine = (event) => { if (event.key === 'Enter' && !event.shiftKey) event.preventDefault(); };

/**
 * say(text) sends. draft: a text that is typed in already. kept: what was typed here before. lastOwn: what ArrowUp
 * brings back. reply: {who, text} of what is answered; onReplyEnd leaves it. cannot: nothing can be sent now; note says why. before,
 * after: buttons beside the text. instead: what takes the place of the row. onText(text) hears what is typed,
 * onFiles(files) gets what is pasted.
 */
export function Composer({ draft, kept, say, lastOwn, reply, onReplyEnd, cannot, note, before, after, instead, onText, onFiles }) {
  const [text, setText] = useState(draft || kept || '');
  const form = useRef();
  const input = useRef();
  const queue = useRef(Promise.resolve());
  const sent = useRef('');
  const id = useId();
  useEffect(() => {
    if (!draft) return;
    setText(draft);
    input.current.focus();
  }, [draft]);
  useEffect(() => { if (reply) input.current.focus(); }, [reply?.text]);
  useEffect(() => { onText?.(text); }, [text]);
  useEffect(() => {
    if (instead) return () => form.current?.querySelector('[data-t=record]')?.focus();
    return undefined;
  }, [Boolean(instead)]);

  // Who writes faster than the network takes it keeps the order.
  const send = (event) => {
    event?.preventDefault();
    const message = text.trim();
    if (!message || cannot) return;
    setText('');
    sent.current = message;
    queue.current = queue.current.then(() => say(message)).catch((error) => {
      setText((now) => now || message);
      toast(error.message, { kind: 'bad' });
    });
    input.current.focus();
  };
  const keys = (event) => {
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) send(event);
    if (event.key === 'ArrowUp' && !text && (sent.current || lastOwn)) { event.preventDefault(); setText(sent.current || lastOwn); }
    if (event.key === 'Escape') {
      event.stopPropagation();
      if (reply) onReplyEnd(); else input.current.blur();
    }
  };
  const paste = (event) => {
    const files = [...event.clipboardData.files];
    if (files.length && onFiles) { event.preventDefault(); onFiles(files); }
  };
  return html`<form class="composer" ref=${form} onSubmit=${send}>
    ${note}
    ${draft && text === draft && html`<p class="typed">${t('typedIn')}</p>`}
    ${reply && html`<div class="quoted"><span class="grow"><b>${t('replyTo', { who: reply.who })}</b><bdi class="clip">${reply.text}
      </bdi></span>
      <${IconButton} small icon="close" label=${core('cancel')} onClick=${onReplyEnd} /></div>`}
    ${instead}
    <div class="row nowrap" hidden=${Boolean(instead)}>
      ${before}
      <label class="sr" for=${id}>${t('message')}</label>
      <textarea id=${id} ref=${input} rows="1" maxlength="4096" placeholder=${t('message')} value=${text} disabled=${cannot}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${keys} onKeyPress=${noLine} onPaste=${paste} />
      ${after}
      <button type="submit" class="send" aria-label=${t('send')} title=${t('send')} disabled=${!text.trim() || cannot}>
        <${Icon} name="send" size=${20} /></button>
    </div>
  </form>`;
}
