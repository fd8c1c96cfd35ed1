// Where the phone's owner writes. Enter sends, Shift+Enter begins a new line.
import { html, useState, useEffect, useRef, useId } from '../view.js';
import { may } from '../state.js';
import { texts } from '../i18n.js';
import { IconButton } from '../parts/button.js';
import { Note } from '../parts/card.js';
import { NeedsRole } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { toast } from '../parts/toast.js';

const core = texts('core');
const t = texts('phone');

// Some keyboards send the new line apart from the key.
const noLine = (event) => { if (event.key === 'Enter' && !event.shiftKey) event.preventDefault(); };

export function Composer({ channel, device, draft, say, lastOwn, reply, onReplyEnd }) {
  const [text, setText] = useState(draft || '');
  const [More, setMore] = useState(null);
  const [Recorder, setRecorder] = useState(null);
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

  // Who writes faster than the network takes it keeps the order.
  const send = (event) => {
    event?.preventDefault();
    const message = text.trim();
    if (!message) return;
    setText('');
    sent.current = message;
    queue.current = queue.current.then(() => say({ type: 'text', message })).catch((error) => {
      setText((now) => now || message);
      toast(error.message, { kind: 'bad' });
    });
    input.current.focus();
  };
  const keys = (event) => {
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) send(event);
    if (event.key === 'ArrowUp' && !text) { event.preventDefault(); setText(sent.current || lastOwn || ''); }
    if (event.key === 'Escape' && reply) { event.stopPropagation(); onReplyEnd(); }
  };
  const other = async () => {
    const { More: dialog } = await import('./phone_more.js'); // seldom wanted
    setMore(() => dialog);
  };
  const record = async () => {
    const { Recorder: row } = await import('./phone_more.js'); // likewise
    setRecorder(() => row);
  };
  useEffect(() => {
    if (Recorder) return () => form.current?.querySelector('[data-t=record]')?.focus();
    return undefined;
  }, [Recorder]);
  const cannot = !device.on_network || !may('support');
  return html`<form class="composer" ref=${form} onSubmit=${send}>
    ${!may('support') ? html`<${NeedsRole} role="support" />` : cannot && html`<${Note} kind="warn">${t('notOnNetwork')}<//>`}
    ${draft && text === draft && html`<p class="typed">${t('typedIn')}</p>`}
    ${reply && html`<div class="quoted"><span class="grow"><b>${t('replyTo', { who: reply.who })}</b><bdi class="clip">${reply.text}</bdi></span>
      <${IconButton} small icon="close" label=${core('cancel')} onClick=${onReplyEnd} /></div>`}
    ${Recorder && html`<${Recorder} say=${say} close=${() => setRecorder(null)} />`}
    <div class="row nowrap" hidden=${Boolean(Recorder)}>
      <${IconButton} icon="plus" label=${t('sendOther')} disabled=${cannot} onClick=${other} />
      <label class="sr" for=${id}>${t('message')}</label>
      <textarea id=${id} ref=${input} rows="1" maxlength="4096" placeholder=${t('message')} value=${text} disabled=${cannot}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${keys} onKeyPress=${noLine} />
      <${IconButton} icon="voice" label=${t('record')} disabled=${cannot} data-t="record" onClick=${record} />
      <button type="submit" class="send" aria-label=${t('send')} title=${t('send')} disabled=${!text.trim() || cannot}><${Icon} name="send" size=${20} /></button>
    </div>
  </form>
  ${More && html`<${More} channel=${channel} device=${device} text=${text} say=${say} close=${() => setMore(null)} />`}`;
}
