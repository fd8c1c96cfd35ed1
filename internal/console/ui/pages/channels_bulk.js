// Bulk actions on channels: a few requests at a time, with progress and a result for each.
import { html, useEffect, useRef, useState } from '../view.js';
import { api } from '../api.js';
import { reloadChannels, hasRole } from '../state.js';
import { texts } from '../i18n.js';
import { Button } from '../parts/button.js';
import { confirm, Dialog } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { say } from '../parts/toast.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { toLabels } from '../parts/labels.js';
import { LabelsField } from '../parts/labels_field.js';

const t = texts('channels');
const core = texts('core');

const together = 4; // requests at once: a server with thousands of channels has other work too
const shownFailures = 50;

const at = (code) => `/manage/channels/${encodeURIComponent(code)}`;
const acts = {
  start: (code) => api.post(`${at(code)}/start`),
  stop: (code) => api.post(`${at(code)}/stop`),
  restart: async (code) => { await api.post(`${at(code)}/stop`); await api.post(`${at(code)}/start`); },
  label: (code, body) => api.patch(at(code), body),
  delete: (code) => api.del(at(code)),
};
const asks = {
  stop: (n) => ({ title: t('stopTitle', { n }), text: t('stopText'), action: t('stop'), danger: true }),
  restart: (n) => ({ title: t('restartTitle', { n }), text: t('restartText'), action: t('restart') }),
  delete: (n, codes) => ({ title: t('deleteTitle', { n }), text: t('deleteText'), action: t('delete'), danger: true, typed: n === 1
    ? codes[0] : t('deleteTyped', { n }) }),
};

/** The codes of all channels that a list finds. */
async function allCodes(asked) {
  const codes = [];
  for (let cursor; ;) {
    const { data, meta } = await api.get('/manage/channels', { query: { ...asked, sort: 'code', limit: 200, cursor } });
    codes.push(...data.map((row) => row.code));
    if (!meta.next_cursor) return codes;
    cursor = meta.next_cursor;
  }
}

/**
 * The bar of what is selected. picked: a signal of codes. results: a signal of outcomes by code. asked: what the list
 * shows, of total channels.
 */
export function Bulk({ picked, results, asked, total, onDone }) {
  const [run, setRun] = useState(null); // {verb, n, done, over}
  const [labels, setLabels] = useState(false);
  const going = useRef(false);
  useEffect(() => () => { going.current = false; }, []);
  const codes = [...picked.value];
  const failed = [...results.value].filter(([, outcome]) => !outcome.good);

  const work = async (verb, body) => {
    const n = codes.length;
    if (asks[verb] && !await confirm(asks[verb](n, codes))) return;
    const left = [...codes];
    const outcomes = new Map();
    going.current = true;
    let drawn = 0;
    const draw = (over) => { drawn = performance.now(); results.value = new Map(outcomes);
      setRun({ verb, n, done: outcomes.size, over }); };
    const next = async () => {
      for (let code; going.current && (code = left.shift());) {
        try {
          await acts[verb](code, body);
          outcomes.set(code, { good: true, text: t(`did.${verb}`) });
        } catch (error) { outcomes.set(code, { text: error.status === 0 ? core('noAnswer') : error.message }); }
        if (performance.now() - drawn > 100) draw();
      }
    };
    draw();
    await Promise.all(Array.from({ length: together }, next));
    going.current = false;
    const bad = [...outcomes.values()].filter((one) => !one.good).length;
    if (verb === 'delete') picked.value = new Set(codes.filter((code) => !outcomes.get(code)?.good));
    draw(true);
    say(`${t('finished', { n: outcomes.size })} ${bad ? t('failures', { n: bad }) : ''}`);
    await Promise.allSettled([onDone(), verb === 'delete' && reloadChannels()]);
  };
  const close = () => { setRun(null); results.value = new Map(); picked.value = new Set(); };
  const button = (verb, icon, kind) =>
    html`<${Button} key=${verb} small icon=${icon} kind=${kind} disabled=${!codes.length} onClick=${() => work(verb)}>${t(verb)}<//>`;

  if (!hasRole('operator') || (!codes.length && !run)) return null;
  return html`<div class="bulk" role="region" aria-label=${t('selected', { n: codes.length })} data-t="bulk">
    ${run && html`<progress max=${run.n} value=${run.done} aria-label=${t('running', { done: run.done, n: run.n })} />
      <span>${run.over ? t('finished', { n: run.done }) : t('running', { done: run.done, n: run.n })}</span>
      ${failed.length > 0 && html`<details class="bulk-failed"><summary class="some-failed">${t('failures', { n: failed.length })}</summary>
        <ul>${failed.slice(0, shownFailures).map(([code, { text }]) => html`<li key=${code}><code>${code}</code> ${text}</li>`)}</ul>
          </details>`}`}
    ${(!run || run.over) && codes.length > 0 && html`<strong>${t('selected', { n: codes.length })}</strong>`}
    ${!run && total > codes.length &&
      html`<${Button} small kind="quiet" onClick=${async () => { picked.value = new Set(await allCodes(asked)); }}>
        ${t('selectAll', { n: total })}<//>`}
    <span class="row">
      ${run && !run.over ? html`<${Button} key="leave" small onClick=${() => { going.current = false; }}>${t('cancelRest')}<//>` : html`
        ${button('start', 'play')}${button('stop', 'stop')}${button('restart', 'refresh')}
        <${Button} key="label" small icon="tag" disabled=${!codes.length} onClick=${() => setLabels(true)}>${t('label')}<//>
        ${button('delete', 'trash', 'danger')}
        <${Button} key="clear" small kind="quiet" onClick=${close}>${t('deselect')}<//>`}
    </span>
  </div>
  <${Dialog} open=${labels} title=${t('labelTitle', { n: codes.length })} onClose=${() => setLabels(false)}>
    <${LabelForm} onSend=${(body) => { setLabels(false); work('label', body); }} /><//>`;
}

function LabelForm({ onSend }) {
  const form = useForm({ way: 'add_labels', labels: '' }, async ({ way, labels }) => {
    if (!toLabels(labels).length) throw { errors: { labels: [t('noLabels')] } };
    onSend({ [way]: toLabels(labels) });
  });
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="way" label=${t('labelWay')} type="radio"
      options=${[['add_labels', t('addLabels')], ['remove_labels', t('removeLabels')]]} />
    <${LabelsField} form=${form} />
    <div class="row"><${Submit} need="operator" form=${form}>${core('save')}<//></div>
  <//>`;
}

export const Result = ({ of: result }) => result && html`<span class="state ${result.good ? 'good' : 'bad'} clip" title=${result.text}>
  <${Icon} name=${result.good ? 'good' : 'bad'} size=${16} />${result.text}</span>`;
