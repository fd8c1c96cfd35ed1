// Makes events happen on a sandbox channel: a simulated phone performs them; nothing is faked.
import { api } from '../api.js';

async function phoneOn(channel) {
  const { data } = await api.get('/sandbox/phones', { channel });
  return data[0] || (await api.post('/sandbox/phones', {}, { channel })).data;
}

const asPhone = async (channel, body) =>
  (await api.post(`/sandbox/phones/${(await phoneOn(channel)).number}/send`, body, { channel })).data;
const toPhone = async (channel, kind, body) =>
  (await api.post(`/send-message/${kind}`, { contact_id: (await phoneOn(channel)).contact_id, ...body }, { channel })).data;

/** By type of event: act(channel, text). */
export const acts = {
  'message.received': (channel, message) => asPhone(channel, { type: 'text', message }),
  'message.status': (channel, message) => toPhone(channel, 'text', { message }),
  'message.reaction': async (channel, message) => {
    const { message_id: id } = await toPhone(channel, 'text', { message });
    await asPhone(channel, { type: 'reaction', message_id: id, reaction: '👍' });
  },
  'message.edited': async (channel, message) => {
    const { message_id: id } = await asPhone(channel, { type: 'text', message });
    await asPhone(channel, { type: 'edit', message_id: id, message: `${message} …` });
  },
  'message.deleted': async (channel, message) => {
    const { message_id: id } = await asPhone(channel, { type: 'text', message });
    await asPhone(channel, { type: 'delete', message_id: id });
  },
  'message.media': (channel, caption) =>
    asPhone(channel, { type: 'file', caption, file: { data: btoa('Parley'), filename: 'parley.txt' } }),
  'poll.vote': async (channel, title) => {
    const { message_id: id } = await toPhone(channel, 'poll', { title, options: ['1', '2'] });
    await asPhone(channel, { type: 'vote', message_id: id, options: ['1'] });
  },
};
