// What the palette finds, and what it does: pages, channels, phones, customers, the last messages and actions.
import { html, useState, useEffect } from '../view.js';
import { api, signOut } from '../api.js';
import { address, go, href, routes } from '../router.js';
import { currentChannel, isOffered, sandboxes, totals, addChannels, toLine, masked, pinned, helpOpen, shortcuts, setTheme,
  select } from '../state.js';
import { active } from '../keys.js';
import { Icon } from '../parts/icon.js';
import { phone, mask, number } from '../parts/who.js';
import { Keys } from './help.js';
import { texts } from '../i18n.js';

const t = texts('core');

// A long text leaves room for whose it is.
const room = { maxWidth: 'min(22rem, 40vw)' };

const flip = (value) => () => { value.value = !value.value; };

/** Everything that can be found: {group, label, more: [texts], icon, key, run}. */
function entries(found) {
  const pages = routes.value.filter((entry) => entry.icon && isOffered(entry)).map((entry) => ({
    group: 'pages', label: t(`page.${entry.name}`), icon: entry.icon, key: `g ${entry.key}`, run: () => go(address(entry)),
  }));
  const actions = active.value.filter(([, , group]) => group === 'page').map(([key, label]) => {
    const name = { j: '', k: '', x: '', Enter: '' };
    return name[key] === undefined && { group: 'actions', label, icon: 'bolt', key,
      run: () => dispatchEvent(new KeyboardEvent('keydown', { key })) };
  }).filter(Boolean);
  const general = [
    { label: masked.value ? t('maskOff') : t('maskOn'), icon: 'hidden', key: '.', run: flip(masked) },
    { label: pinned.value ? t('unpinPhone') : t('pinPhone'), icon: 'phone', run: flip(pinned) },
    ...['auto', 'light', 'dark'].map((name) => ({ label: `${t('theme')}: ${t(`theme.${name}`)}`, icon: 'sun', run: () => setTheme(name) })),
    { label: shortcuts.value ? t('shortcutsOff') : t('shortcutsOn'), icon: 'help', run: flip(shortcuts) },
    { label: t('help'), icon: 'help', key: '?', run: () => { helpOpen.value = true; } },
    { label: t('docs'), icon: 'api', run: () => location.assign('/docs') },
    { label: t('allChannels'), icon: 'channels', run: () => select('') },
    { label: t('signOut'), icon: 'out', run: signOut },
  ].map((entry) => ({ group: 'actions', ...entry }));
  return [...pages, ...found, ...actions, ...general];
}

// What only the server knows is asked for when the palette opens.
function useFound() {
  const [found, setFound] = useState([]);
  useEffect(() => {
    const channel = currentChannel.value?.simulated ? currentChannel.value : sandboxes.value[0];
    const phones = channel ? api.get('/sandbox/phones', { channel: channel.code }) : Promise.resolve({ data: [] });
    const messages = api.get('/manage/messages', { query: { limit: 10 } });
    Promise.allSettled([phones, messages]).then(([a, b]) => setFound([
      ...(a.value?.data || []).map((one) => ({ group: 'phones', label: mask(one.name || phone(one.number)), icon: 'phone',
        more: [one.name && mask(phone(one.number))], run: () => go(`/phone/${number(one.number)}`) })),
      ...(b.value?.data || []).map((one) =>
        ({ group: 'messages', label: mask(toLine(one) || one.type), icon: 'messages',
          more: [one.channel, mask(one.contact_name || one.group_name || phone(one.contact_id))],
          run: () => go('/messages', { open: one.message_id, channel: one.channel }) })),
    ]));
  }, []);
  return found;
}

// Channels that the text names: the server finds them, however many there are.
function useChannels(text) {
  const [found, setFound] = useState({ text: null, list: [] });
  useEffect(() => {
    let there = true;
    const timer = setTimeout(async () => {
      try {
        const { data } = await api.get('/manage/channels',
          { query: { search: text.slice(0, 100), sort: text ? 'name' : 'attention', limit: 8 } });
        addChannels(data);
        if (there) setFound({ text, list: data });
      } catch { /* the others can still be found */ }
    }, found.text === null ? 0 : 150);
    return () => { there = false; clearTimeout(timer); };
  }, [text]);
  return found.list.map(({ code, name, number: own }) => ({
    group: 'channels', label: code, more: [mask(name), mask(phone(own))], icon: 'channels',
      run: () => go(`/channels/${encodeURIComponent(code)}`),
  }));
}

// Customers are looked up by name or number on all channels, once somebody stops typing for a moment.
function useCustomers(text) {
  const [found, setFound] = useState([]);
  useEffect(() => {
    if (text.length < 2) { setFound([]); return undefined; }
    let there = true;
    const timer = setTimeout(() => api.get('/manage/chats', { query: { search: text, limit: 8 } })
      .then(({ data }) => there && setFound(data.map((chat) => ({
      group: 'customers', label: mask(chat.name || phone(chat.id)),
        more: [chat.is_group || !chat.name ? '' : mask(phone(chat.id)), chat.channel],
        icon: 'conversations', sure: true,
      run: () => go(`/conversations/${encodeURIComponent(chat.channel)}/${encodeURIComponent(chat.id)}`),
    }))), () => {}), 200);
    return () => { there = false; clearTimeout(timer); };
  }, [text]);
  return found;
}

// Each letter in its order, words that begin with the text first.
function score({ label, more = [], sure }, text) {
  if (sure) return 2.5;
  const all = [label, ...more].join(' ').toLowerCase();
  const at = all.indexOf(text);
  if (at >= 0) return at === 0 || /\W/.test(all[at - 1]) ? 3 : 2;
  let i = 0;
  for (const letter of label.toLowerCase()) if (letter === text[i]) i++;
  return i === text.length ? 1 : 0;
}

// The best first, each with the others of its group. Beside real channels a simulated phone is hardly what was meant.
function ranked(all, text) {
  const points = ({ group, ...entry }) => (group === 'channels' ? score(entry, text) || 1
    : group === 'phones' && totals.value?.real ? score(entry, text) / 10 : score(entry, text));
  const best = all.map((entry) => [points(entry), entry]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 30)
    .map(([, entry]) => entry);
  return Object.values(Object.groupBy(best, (entry) => entry.group)).flat();
}

/**
 * The entries for a text: the one at a place is picked, and onPick(at) picks another; run(entry) carries it out. keys: press is set to
 * what takes a key of the input, and early has those that were pressed before this was there.
 */
export function Results({ id, text, at, onPick, run, keys }) {
  const wanted = text.toLowerCase();
  const found = [...useChannels(wanted), ...useFound()];
  const customers = useCustomers(text);
  const list = wanted ? ranked([...entries(found), ...customers], wanted) : entries(found);
  if (wanted) list.push({ group: 'actions', label: t('palette.searchFor', { text }), icon: 'search',
    run: () => location.assign(href('/messages', { q: text })) });
  const current = Math.min(at, list.length - 1);
  let next = current; // several keys may come before this is drawn again
  keys.press = (key) => {
    if (key === 'Enter') { run(list[next]); return; }
    next = (next + (key === 'ArrowDown' ? 1 : -1) + list.length) % list.length;
    onPick(next);
    document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
  };
  useEffect(() => keys.early.splice(0).forEach((key) => keys.press(key)), []);
  let group = '';
  return list.map((entry, i) => {
    const heads = entry.group !== group;
    group = entry.group;
    return html`${heads && html`<p class="palette-group" role="presentation">${t(`palette.${group}`)}</p>`}
      <div key=${i} role="option" id="${id}-${i}" aria-selected=${String(i === current)} onClick=${() => run(entry)}
        onMouseMove=${() => i !== current && onPick(i)}>
        <${Icon} name=${entry.icon} /><span class="clip" style=${room}><bdi>${entry.label}</bdi></span><span class="muted clip">
          ${entry.more?.map((one) => html`<bdi key=${one}>${one}</bdi> `)}</span>${entry.key && html`<${Keys} name=${entry.key} />`}
      </div>`;
  });
}
