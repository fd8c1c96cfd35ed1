// A field of a form that chooses a channel.
import { html } from '../view.js';
import { texts } from '../i18n.js';
import { ChannelPicker } from './channel_picker.js';
import { Field } from './form.js';

const t = texts('core');

/** Its value is the code. none: as of ChannelPicker. */
export function ChannelField({ form, name = 'channel', none, ...rest }) {
  return html`<${Field} form=${form} name=${name} label=${t('page.channel')} required=${!none} ...${rest}
    as=${(common, set) => html`<${ChannelPicker} ...${common} value=${form.values[name]} onChange=${set} none=${none} />`} />`;
}
