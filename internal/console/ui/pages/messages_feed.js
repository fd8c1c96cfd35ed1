// The messages that a filter finds: what the server has, kept up by what it tells, and what is new.
import { useState, useEffect, useRef } from '../view.js';
import { api, useLoad } from '../api.js';
import { useEvents } from '../live.js';
import { now } from '../state.js';
import { toQuery } from '../parts/filter.js';
import { number } from '../parts/who.js';
import { say } from '../parts/toast.js';
import { texts } from '../i18n.js';

const t = texts('messages');

const perPage = 100;
const most = 3000; // rows in memory; a narrower filter finds older ones
const steps = 5; // of the server's search, each of which looks at so many messages and no more
const sayEvery = 5000;

/** Names a message over all channels, and is no id by itself: codes of channels have no dot. */
export const toKey = (m) => `${m.channel}.${m.message_id}`;
export const isKey = (id) => /^[a-z0-9_-]+\./.test(id);

const wantsCodes = (filter) => filter.type === 'otp';

async function search(filter, cursor) {
  for (let step = 1; ; step++) {
    const { data, meta } = await api.get('/manage/messages', { query: { ...toQuery(filter), limit: perPage, cursor } });
    cursor = meta.next_cursor;
    const rows = wantsCodes(filter) ? data.filter((row) => row.otp) : data;
    if (rows.length || !cursor || step === steps) return { rows, cursor };
  }
}

// An id is looked up on the channel that is named, or on all. The id of an event finds its message.
async function lookUp({ id, channel }) {
  const { data } = await api.get('/manage/find', { query: { id, channel } });
  return { rows: data.filter((one) => one.message).map((one) => one.message), cursor: null };
}

const find = (filter, cursor) => (filter.id ? lookUp(filter) : search(filter, cursor));

// A number is named by its beginning or its end; as it is dialled at home it has no country.
const isOf = (digits, part) => digits.startsWith(number(part)) || digits.endsWith(number(part).replace(/^0/, ''));

/** Whether a message that is new belongs into the list. */
function wanted(filter, m) {
  const { channel, contact, direction, status, type, text, before, id } = { ...filter, ...toQuery(filter) };
  return !id && !before && !wantsCodes(filter) && (!channel || channel === m.channel) &&
    (!contact || isOf(number(m.contact_id || ''), contact))
    && (!direction || (direction === 'out') === m.outgoing) && (!status || status === m.status) && (!type || type === m.type)
    && (!text || m.body.toLowerCase().includes(text.toLowerCase()));
}

const toRow = ({ channel, timestamp, data }, names) => ({
  ...data, channel, contact_name: data.contact_name || names.get(data.contact_id) || '', updated_at: timestamp,
});

// The later version wins: an event may overtake a response.
const newer = (was, next) => (Date.parse(next.updated_at) >= Date.parse(was.updated_at) ? next
  : { ...next, status: was.status, error: was.error, updated_at: was.updated_at });

const byTime = (a, b) => (a.timestamp < b.timestamp ? 1 : a.timestamp > b.timestamp ? -1 : 0);

/** Puts rows into the list: known ones where they are, others on top, or behind the button while it is held. */
function merged(was, list, held) {
  if (!list.length) return was;
  const next = new Map(list.map((row) => [toKey(row), row]));
  const update = (rows) => rows.map((row) => {
    const key = toKey(row);
    const one = next.get(key);
    next.delete(key);
    return one ? newer(row, one) : row;
  });
  const rows = update(was.rows);
  const fresh = update(was.fresh);
  const oldest = was.cursor && rows.at(-1)?.timestamp;
  const added = [...next.values()].filter((row) => !oldest || row.timestamp >= oldest);
  const all = { ...was, rows, fresh: added.length ? [...added, ...fresh].sort(byTime).slice(0, most) : fresh };
  return held && rows.length ? all : shown(all);
}

const shown = (was) => (was.fresh.length ? { ...was, rows: [...was.fresh, ...was.rows].sort(byTime).slice(0, most), fresh: [] } : was);

/** {rows, fresh, more, load, show(), older(), refresh()}: rows are undefined until they were loaded; fresh counts what waits. */
export function useFeed(filter, held) {
  const about = JSON.stringify(filter);
  const load = useLoad(() => find(filter), [about]);
  const [state, set] = useState({ rows: undefined, fresh: [], cursor: null });
  const early = useRef([]); // events that arrived while the list was loading
  const now_ = useRef({});
  now_.current = { filter, about, held };
  const tell = useTell();

  const applyEvents = (was, events) => {
    const names = new Map(was.rows.map((row) => [row.contact_id, row.contact_name]));
    const last = new Map(events.map((event) => [`${event.channel}.${event.data.message_id}`, event]));
    const known = new Set([...was.rows, ...was.fresh].map(toKey));
    const list = [...last].map(([key, event]) => [key, toRow(event, names)])
      .filter(([key, row]) => known.has(key) || wanted(now_.current.filter, row));
    const fill = new Map([...was.rows, ...was.fresh].filter((row) => last.has(toKey(row))).map((row) => [toKey(row), row]));
    // An event does not tell everything that the list has.
    const whole = list.map(([key, row]) =>
      (known.has(key) ? { ...fill.get(key), status: row.status, error: row.error, updated_at: row.updated_at,
        ...(row.status === 'DELETED' && { body: '' }),
        ...(row.edited_at && row.status !== 'DELETED' && { body: row.body, edited_at: row.edited_at }) } : row));
    const added = list.filter(([key]) => !known.has(key)).map(([, row]) => row);
    if (added.length) tell(added);
    if (added.length || wantsCodes(now_.current.filter)) refresh(); // an event does not say that it is of a code
    return merged(was, whole, now_.current.held);
  };
  const latest = useRef(state);
  const change = (fn) => { latest.current = fn(latest.current); set(latest.current); };

  // What an event leaves out (names, request ids) and what none tells of (messages that wait to be sent).
  const timer = useRef(0);
  const refresh = () => {
    timer.current ||= setTimeout(async () => {
      const asked = now_.current.about;
      try {
        const { rows } = await find(now_.current.filter);
        if (asked === now_.current.about && timer.current) change((was) => (was.rows ? merged(was, rows, now_.current.held) : was));
      } catch { /* the next one may work; the shell says that the server is gone */ } finally { timer.current = 0; }
    }, 1000);
  };
  useEffect(() => () => { clearTimeout(timer.current); timer.current = 0; }, []);
  useEffect(() => { if (latest.current.rows && !document.hidden) refresh(); }, [now.value]);

  useEvents(['message.received', 'message.status', 'message.deleted', 'message.edited'], (events) => {
    if (load.loading) early.current.push(...events);
    if (latest.current.rows) change((was) => applyEvents(was, events));
  });
  useEffect(() => {
    if (!load.data) return;
    const arrived = early.current;
    early.current = [];
    change(() => applyEvents({ rows: load.data.rows, fresh: [], cursor: load.data.cursor }, arrived));
  }, [load.data]);
  useEffect(() => { if (!held && latest.current.fresh.length) change(shown); }, [held]);

  const older = async () => {
    const { cursor } = latest.current;
    const page = await find(now_.current.filter, cursor);
    change((was) => {
      const known = new Set(was.rows.map(toKey));
      return { ...was, cursor: page.cursor, rows: [...was.rows, ...page.rows.filter((row) => !known.has(toKey(row)))] };
    });
  };
  return { rows: state.rows, fresh: state.fresh.length, more: Boolean(state.cursor) && state.rows?.length < most, load, older, refresh,
    show: () => change(shown) };
}

// Screen readers hear how much came, now and then, and not each row.
function useTell() {
  const state = useRef({ n: 0, failed: 0, timer: 0 }).current;
  useEffect(() => () => clearTimeout(state.timer), []);
  return (rows) => {
    state.n += rows.length;
    state.failed += rows.filter((row) => row.status === 'FAILED').length;
    state.timer ||= setTimeout(() => {
      say(t('newMessages', { n: state.n }) + (state.failed ? ` ${t('newFailed', { n: state.failed })}` : ''));
      Object.assign(state, { n: 0, failed: 0, timer: 0 });
    }, sayEvery);
  };
}
