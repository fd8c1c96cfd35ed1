// The form that makes and changes a webhook.
import { html, useState } from '../view.js';
import { api } from '../api.js';
import { setQuery } from '../router.js';
import { texts } from '../i18n.js';
import { Note } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode } from '../parts/as_code.js';
import { Code } from '../parts/code.js';
import { useForm, Form, Field, Submit } from '../parts/form.js';
import { ChannelField } from '../parts/channel_field.js';
import { EventType } from '../parts/status.js';

const t = texts('webhooks');
const core = texts('core');

const types = ['message.received', 'message.sent_on_phone', 'message.status', 'message.reaction', 'message.deleted',
  'message.edited', 'message.media', 'message.unreadable', 'poll.vote', 'channel.status', 'channel.pairing', 'channel.restricted',
  'channel.notice',
  'contact.opted_out', 'contact.opted_in', 'otp.approved', 'otp.failed', 'otp.expired', 'otp.paused', 'otp.guessing', 'group.changed',
  'call.received', 'call.ended', 'webhook.gap'];

export function EndpointForm({ webhook: w, close, onDone }) {
  const [made, setMade] = useState(null);
  const some = w?.events.length > 0;
  const form = useForm({ url: w?.url || '', channel: w?.channel || '', which: some ? 'some' : 'all', events: new Set(w?.events),
    signed: w?.media_links === 'signed' }, async (values) => {
    const { data } = w ? await api.patch(`/manage/webhooks/${w.id}`, wanted(values)) : await api.post('/manage/webhooks', wanted(values));
    if (w) close(); else setMade(data);
    await onDone();
  });
  const wanted = ({ url, channel, which, events, signed }) =>
    ({ url, ...((signed || w) && { media_links: signed ? 'signed' : 'token' }), ...(channel && !w && { channel }),
      ...((which === 'some' || w) && { events: which === 'some' ? types.filter((type) => events.has(type)) : [] }) });
  const { values, errors } = form;
  if (made) {
    return html`<${Note} kind="good" title=${t('added')}>${t('addedText')}<//><h3>${t('secret')}</h3>
      <${Code} wrap text=${made.secret} what=${t('secret')} />
      <div class="row"><${Button} kind="primary" onClick=${() => setQuery({ new: null, webhook: made.id })}>${t('tryIt')}<//></div>`;
  }
  const turn = (type) => () => { const next = new Set(values.events); if (!next.delete(type)) next.add(type); form.set('events', next); };
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="url" type="url" label=${t('address')} hint=${t('addressHint')} required autofocus autocomplete="off" />
    ${w ? html`<p class="hint">${t('channelStays', { channel: w.channel || t('every') })}</p>`
      : html`<${ChannelField} form=${form} none=${t('everyChannel')} />`}
    <${Field} form=${form} name="which" path="events" type="radio" label=${t('events')}
      options=${[['all', t('everyEvent')], ['some', t('onlyThese')]]} />
    ${values.which === 'some' && html`<div class="event-list" role="group" aria-label=${t('onlyThese')}>
      ${types.map((type) => html`<label key=${type} class="choice"><input type="checkbox" checked=${values.events.has(type)}
        onChange=${turn(type)} /><${EventType} type=${type} /></label>`)}</div>`}
    <${Field} form=${form} name="signed" path="media_links" type="checkbox" label=${t('signedLinks')} />
    <div class="row"><${Submit} need="operator" form=${form} disabled=${values.which === 'some' && !values.events.size && !errors.events}>
      ${w ? core('save') : t('add')}<//>
      <${AsCode} request=${{ method: w ? 'PATCH' : 'POST', path: `/api/manage/webhooks${w ? `/${w.id}` : ''}`,
        body: wanted(values) }} /></div>
  <//>`;
}
