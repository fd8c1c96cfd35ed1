// A link for whoever has the phone: to copy, to scan, or to send with a few words in their language.
import { html, useState, useId } from '../view.js';
import { api, useLoad } from '../api.js';
import { texts, textsIn, lang, languages, clock } from '../i18n.js';
import { Card } from '../parts/card.js';
import { Button } from '../parts/button.js';
import { AsCode, Code } from '../parts/code.js';
import { QR } from '../parts/qr.js';
import { Left } from '../parts/time.js';

const t = texts('pairing');

export function OwnerLink({ channel }) {
  const [link, setLink] = useState(null);
  const path = `/manage/channels/${channel.code}/pair-link`;
  const make = async () => setLink((await api.post(path)).data);
  return html`<${Card} title=${t('owner')}>
    <p class="muted">${t('ownerText')}</p>
    ${link && html`<${Link} link=${link} name=${channel.name} />`}
    <div class="row"><${Button} icon="link" onClick=${make}>${t(link ? 'anotherLink' : 'makeLink')}<//><${AsCode} request=${{ method: 'POST', path: `/api${path}` }} /></div>
  <//>`;
}

function Link({ link: { url, expires_at: until, qr }, name }) {
  const [language, setLanguage] = useState(lang.value);
  const id = useId();
  const values = { name, url, time: clock(until).slice(0, 5) };
  const mail = useLoad(() => textsIn(language, 'pairmail'), [language]).data;
  return html`<div class="stack">
    <${Code} wrap text=${url} what=${t('link')} />
    <p class="muted">${t('linkLeft', { left: html`<${Left} until=${until} />` })}</p>
    ${qr?.length > 0 && html`<${QR} rows=${qr} label=${t('linkQR')} size=${200} />`}
    <div class="row nowrap"><label for=${id} class="label">${t('mailIn')}</label>
      <select id=${id} value=${language} onChange=${(event) => setLanguage(event.target.value)}>${Object.entries(languages).map(([code, label]) => html`
        <option key=${code} value=${code} selected=${code === language}>${label}</option>`)}</select></div>
    ${mail && html`<${Code} wrap text=${mail('message', values)} what=${t('mail')} />
      <p><a href=${`mailto:?subject=${encodeURIComponent(mail('subject', values))}&body=${encodeURIComponent(mail('message', values))}`}>${t('openMail')}</a></p>`}
  </div>`;
}
