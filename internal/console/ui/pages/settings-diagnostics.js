// The file for whoever helps: what is in it is shown before it is saved.
import { html, useState } from '../view.js';
import { api } from '../api.js';
import { texts, bytes } from '../i18n.js';
import { Button } from '../parts/button.js';
import { Card } from '../parts/card.js';
import { Code } from '../parts/code.js';
import { Dialog } from '../parts/dialog.js';
import { Tabs, TabPanel } from '../parts/tabs.js';

const t = texts('settings');

async function save() {
  const url = URL.createObjectURL(await api.blob('/manage/diagnostics'));
  const download = `parley-diagnostics-${new Date().toISOString().replace(/[-:]|\..../g, '')}.zip`;
  Object.assign(document.createElement('a'), { href: url, download }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function Diagnostics() {
  const [files, setFiles] = useState(null);
  const [picked, setPicked] = useState('');
  const look = async () => {
    const { data } = await api.get('/manage/diagnostics/contents');
    setPicked(data[0].name);
    setFiles(data);
  };
  return html`<${Card} title=${t('diagnostics')}>
    <p class="muted">${t('diagnosticsText')}</p>
    <div class="row"><${Button} icon="file" onClick=${look}>${t('diagnosticsLook')}<//></div>
    <p class="hint">${t('diagnosticsHint', { command: html`<code>parley diagnostics</code>` })}</p>
    <${Dialog} wide open=${files} title=${t('diagnostics')} onClose=${() => setFiles(null)} foot=${html`<${Button} kind="primary" icon="download" onClick=${save}>${t('diagnosticsSave')}<//>`}>
      <div class="bundle"><${Tabs} small label=${t('diagnosticsFiles')} current=${picked} onPick=${setPicked} tabs=${files?.map((file) => ({ id: file.name, label: file.name, count: bytes(file.bytes) }))} /></div>
      <${TabPanel} label=${picked}><${Code} text=${files?.find((file) => file.name === picked).text} what=${picked} /><//>
    <//>
  <//>`;
}
