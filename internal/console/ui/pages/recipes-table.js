// The recipes: what each asks, of whom, and with which fields.
import { number } from '../parts/who.js';

const contact = ['contact_id', 'contact', '', { required: true }];

/** {id, method, path, fields: [name in the request, type, what stands in it first, more for the input]}; body where it is not just the fields. */
export const recipes = [
  { id: 'text', method: 'POST', path: '/send-message/text', fields: [contact, ['message', 'textarea', 'Halo dari Parley 👋', { required: true }]] },
  { id: 'image', method: 'POST', path: '/send-message/image', fields: [contact, ['file.url', 'url', '', { required: true }], ['caption', 'text', 'Selamat pagi']] },
  { id: 'voice', method: 'POST', path: '/send-message/voice', fields: [contact, ['audioUrl', 'url', '', { required: true }]] },
  { id: 'location', method: 'POST', path: '/send-message/location', fields: [contact, ['latitude', 'text', '-6.2088', { required: true }], ['longitude', 'text', '106.8456', { required: true }], ['title', 'text', 'Toko Ayu']] },
  { id: 'poll', method: 'POST', path: '/send-message/poll', fields: [contact, ['title', 'text', 'Jam berapa?', { required: true }], ['options', 'lines', '10.00\n14.00\n19.00', { required: true }], ['is_multiple_answer', 'checkbox', false]] },
  {
    id: 'pool', method: 'POST', path: '/send-message/pool', fields: [contact, ['texts', 'lines', 'Pesanan #1042 siap.\nBisa diambil sampai jam 17.00.'], ['images', 'lines', '']],
    body: ({ contact_id: id, texts = [], images = [] }) => ({ contact_id: id, pools: [['text', texts], ['image', images]].filter(([, data]) => data.length).map(([type, data]) => ({ type, data })) }),
  },
  { id: 'reply', method: 'POST', path: '/send-message/text', fields: [contact, ['reply_to', 'message', '', { required: true }], ['message', 'textarea', 'Siap!', { required: true }]] },
  { id: 'react', method: 'PUT', path: '/send-message/reaction', fields: [['message_id', 'message', '', { required: true }], ['reaction', 'text', '❤️']], body: (body) => ({ reaction: '', ...body }) },
  { id: 'code', method: 'POST', path: '/otp/code/request', fields: [contact, ['name', 'text', 'Toko Ayu'], ['length', 'number', 6, { min: 4, max: 6 }], ['expires', 'number', 300, { min: 30, max: 3600 }]] },
  { id: 'link', method: 'POST', path: '/otp/link/request', fields: [contact, ['name', 'text', 'Toko Ayu'], ['expires', 'number', 300, { min: 60, max: 86400, required: true }]] },
  { id: 'history', method: 'GET', path: '/chat/detail', fields: [contact, ['limit', 'number', 10, { min: 1, max: 100 }]] },
  { id: 'health', method: 'GET', path: '/channel/health', fields: [] },
];

/** What a recipe's form begins with. */
export const valuesOf = (recipe, to) => Object.fromEntries(recipe.fields.map(([name, type, value]) => [name, type === 'contact' ? to : value]));

const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean);

const read = {
  contact: (text) => text && `${number(text)}@c.us`,
  lines: (text) => lines(text),
};

/** The request that filled-in fields make: {path, query} or {path, body}. What is empty is left out. newest: the message that an empty choice means. */
export function requestOf(recipe, values, newest = '') {
  const body = {};
  for (const [name, type] of recipe.fields) {
    const value = read[type] ? read[type](values[name]) : values[name] || (type === 'message' ? newest : '');
    if (value === '' || value === false || value?.length === 0) continue;
    const [outer, inner] = name.split('.');
    if (inner) body[outer] = { ...body[outer], [inner]: value };
    else body[outer] = value;
  }
  const whole = recipe.body ? recipe.body(body) : body;
  return recipe.method === 'GET' ? { path: recipe.path, query: whole } : { path: recipe.path, body: whole };
}
