// Which simulated phones there are.
import { useMemo, useRef } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { sandboxes, selected } from '../state.js';
import { phone, number, mask } from '../parts/who.js';

const mostChannels = 10; // whose phones are shown together; a picked channel is always shown

/** The sandbox channels on show, their phones, and how to find one. to: a channel that must be among them. */
export function usePhones(to) {
  const all = sandboxes.value.map((channel) => channel.code);
  const shown = all.includes(selected.value) ? [selected.value]
    : [...new Set([...all.filter((code) => code === to), ...all.slice(0, mostChannels)])].sort((a, b) => all.indexOf(a) - all.indexOf(b));
  const load = useLoad(() => Promise.all(shown.map(async (channel) => (await api.get('/sandbox/phones', { channel })).data.map((one) =>
    ({ ...one, name: one.name.trim(), channel })))), [shown.join()]);
  const list = load.data?.flat();
  const known = useRef();
  known.current = new Set(list?.map((one) => one.number));
  // A number that is written to becomes a phone.
  useEvents(['message.'], (events) => {
    if (events.some((event) => shown.includes(event.channel) && !known.current.has(number(event.data.contact_id)))) load.reload();
  });
  // Each channel knows a phone by itself: of several entries the one with a name says most, then one that is away.
  const best = useMemo(() => {
    const says = (one) => (one.name ? 2 : 0) + (one.online ? 0 : 1);
    const found = new Map();
    for (const one of list || []) if (!found.has(one.number) || says(one) > says(found.get(one.number))) found.set(one.number, one);
    return found;
  }, [load.data]);
  return {
    shown, load, list,
    /** One entry for each number, named ones first. */
    faces: useMemo(() => [...best.values()].sort((a, b) => !a.name - !b.name), [best]),
    find: (digits, channel) => (channel ? list?.find((one) => one.number === digits && one.channel === channel) : best.get(digits)),
    channels: (digits) => (list || []).filter((one) => one.number === digits).map((one) => one.channel),
  };
}

/** Any number is a phone, whether or not somebody wrote to it. */
export const stranger = (digits, channel) => ({
  number: digits, contact_id: `${digits}@c.us`, name: '', online: true, reads: 'when_open', delay_ms: 0, blocks: false, on_network: true,
    number_hidden: false, channel,
});

export const toName = (device) => mask(device.name || phone(device.number));
