// The nodes that share the database: how much each serves, whether it is alive, and how to empty one before it is stopped.
import { html } from '../view.js';
import { api, useLoad } from '../api.js';
import { useSecond } from '../state.js';
import { texts } from '../i18n.js';
import { Head, Empty } from '../parts/card.js';
import { Table } from '../parts/table.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { confirm } from '../parts/dialog.js';
import { toast } from '../parts/toast.js';
import { Badge } from '../parts/status.js';
import { Icon } from '../parts/icon.js';
import { Time } from '../parts/time.js';

const t = texts('nodes');
const core = texts('core');

const every = 3000; // shards move within seconds

async function drain(node, done) {
  const { id } = node;
  if (!await confirm({ title: t('drainTitle', { id }), text: t('drainText'), action: t('drain'), danger: true })) return;
  await api.post(`/manage/nodes/${id}/drain`);
  toast(t('drained', { id }), { kind: 'good' });
  await done();
}

export default function Page() {
  const load = useLoad(() => api.get('/manage/nodes'), [Math.floor(useSecond() / every)]);
  const nodes = load.data?.data;
  return html`
    <${Head} title=${core('page.nodes')} lead=${nodes?.length > 0 && t('lead', { n: nodes.length })}
      actions=${html`<${AsCode} request=${{ path: '/api/manage/nodes' }} />`} />
    <${Table} label=${core('page.nodes')} load=${load} rows=${nodes} rowKey=${(node) => node.id} columns=${columns(load.reload, nodes)}
      empty=${html`<${Empty} icon="nodes" title=${t('none')} text=${t('noneText')} />`} />`;
}

const State = ({ state }) => html`<span class="state ${state === 'serving' ? 'good' : 'warn'}">
  <${Icon} name=${state === 'serving' ? 'good' : 'refresh'} size=${16} />${t(`state.${state}`)}</span>`;

function columns(reload, nodes = []) {
  const serving = nodes.filter((node) => node.state === 'serving').length;
  // Without another node that serves, every channel would stop.
  const canDrain = (node) => node.state === 'serving' && serving > 1;
  return [
    { id: 'id', label: t('node'), cell: (node) =>
      html`${t('name', { id: node.id })}${node.self && html` <${Badge} tone="accent">${t('self')}<//>`}`, sort: (node) => Number(node.id),
      card: 'title' },
    { id: 'state', label: t('state'), cell: (node) => html`<${State} state=${node.state} />`, sort: (node) => node.state, card: 'status' },
    { id: 'shards', label: t('shards'), align: 'end', cell: (node) => html`<span class="only-small">${t('shards')} </span>${node.shards}`,
      sort: (node) => node.shards },
    { id: 'version', label: t('version'), cell: (node) => node.version, sort: (node) => node.version },
    { id: 'url', label: t('url'), cell: (node) => html`<code>${node.url}</code>`, wide: true, card: 'text' },
    { id: 'started', label: t('started'), cell: (node) => html`<${Time} at=${node.started_at} />`, sort: (node) => node.started_at,
      wide: true },
    { id: 'renewed', label: t('renewed'), cell: (node) => html`<span class="only-small">${t('renewed')} </span>
      <${Time} at=${node.renewed_at} />`, sort: (node) => node.renewed_at, card: 'when' },
    { id: 'act', label: html`<span class="sr">${t('drain')}</span>`, align: 'end', cell: (node) => canDrain(node) &&
      html`<${Button} need="operator" small kind="quiet" aria-label=${t('drainTitle', { id: node.id })}
        onClick=${() => drain(node, reload)}>${t('drain')}<//>` },
  ];
}
