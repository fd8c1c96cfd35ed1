// The actions on a channel that cannot be undone.
import { html } from '../view.js';
import { api } from '../api.js';
import { go } from '../router.js';
import { networkBy, reloadChannels } from '../state.js';
import { texts } from '../i18n.js';
import { Card } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { confirm } from '../parts/dialog.js';
import { toast } from '../parts/toast.js';

const t = texts('channel');

export function Danger({ channel, changed }) {
  const { code } = channel;
  const ask = (act) => confirm({ title: t(act), text: t(`${act}Text`), action: t(act), danger: true, typed: code });
  const logout = async () => {
    if (!await ask('logout')) return;
    await api.post(`/manage/channels/${code}/logout`);
    toast(t('loggedOut'), { kind: 'good' });
    await changed();
  };
  const remove = async () => {
    if (!await ask('delete')) return;
    await api.del(`/manage/channels/${code}`);
    toast(t('deleted', { code }), { kind: 'good' });
    go('/channels', { channel: null });
    await reloadChannels();
  };
  const row = (act, run, request) => html`<div class="danger-row"><div class="grow"><h2>${t(act)}</h2><p class="muted">
    ${t(`${act}Text`)}</p></div>
    <div class="row"><${AsCode} request=${request} /><${Button} kind="danger" onClick=${run}>${t(act)}<//></div></div>`;
  return html`<${Card} class="danger">
    ${channel.number && channel.status !== 'LOGGED_OUT' && !networkBy(channel.network)?.credentials.length &&
      row('logout', logout, { method: 'POST', path: `/api/manage/channels/${code}/logout` })}
    ${row('delete', remove, { method: 'DELETE', path: `/api/manage/channels/${code}` })}
  <//>`;
}
