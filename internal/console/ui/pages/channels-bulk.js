// Starting and stopping many channels: some at a time, with what became of each.
import { html, useState, useRef, useEffect } from '../view.js';
import { api } from '../api.js';
import { texts } from '../i18n.js';
import { Button } from '../parts/button.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { say } from '../parts/toast.js';

const t = texts('channels');

const together = 4; // requests at once: a server with thousands of channels has other work too

export function Bulk({ picked, results, rows }) {
  const [run, setRun] = useState(null); // {n, done, failed}
  const going = useRef(false);
  useEffect(() => () => { going.current = false; }, []);
  const codes = (rows || []).map((row) => row.code).filter((code) => picked.value.has(code));

  const work = (verb) => async () => {
    const n = codes.length;
    if (verb === 'stop' && !await confirm({ title: t('stopTitle', { n }), text: t('stopText'), action: t('stop'), danger: true })) return;
    const left = [...codes];
    const told = new Map();
    results.value = told;
    going.current = true;
    let failed = 0;
    const next = async () => {
      for (let code; going.current && (code = left.shift());) {
        try {
          await api.post(`/manage/channels/${code}/${verb}`);
          told.set(code, { good: true, text: t(`did.${verb}`) });
        } catch (error) {
          failed++;
          told.set(code, { text: error.message });
        }
        results.value = new Map(told);
        setRun({ n, done: told.size, failed });
      }
    };
    setRun({ n, done: 0, failed });
    await Promise.all(Array.from({ length: together }, next));
    going.current = false;
    setRun({ n, done: told.size, failed, over: true });
    say(`${t('finished', { n: told.size })} ${failed ? t('failures', { n: failed }) : ''}`);
  };
  const close = () => { setRun(null); results.value = new Map(); picked.value = new Set(); };

  if (!codes.length && !run) return null;
  return html`<div class="bulk" role="region" aria-label=${t('selected', { n: codes.length })} data-t="bulk">
    ${run ? html`<progress max=${run.n} value=${run.done} aria-label=${t('running', { done: run.done, n: run.n })} />
      <span>${run.over ? t('finished', { n: run.done }) : t('running', { done: run.done, n: run.n })}</span>
      ${run.failed > 0 && html`<span class="some-failed">${t('failures', { n: run.failed })}</span>`}` : html`<strong>${t('selected', { n: codes.length })}</strong>`}
    <span class="row">
      ${run && !run.over ? html`<${Button} key="leave" small onClick=${() => { going.current = false; }}>${t('cancelRest')}<//>` : html`
        <${Button} key="start" small icon="play" disabled=${!codes.length} onClick=${work('start')}>${t('start')}<//>
        <${Button} key="stop" small icon="stop" disabled=${!codes.length} onClick=${work('stop')}>${t('stop')}<//>
        <${Button} key="clear" small kind="quiet" onClick=${close}>${t('deselect')}<//>`}
    </span>
  </div>`;
}

export const Result = ({ of: result }) => result && html`<span class="state ${result.good ? 'good' : 'bad'} clip" title=${result.text}><${Icon} name=${result.good ? 'good' : 'bad'} size=${16} />${result.text}</span>`;
