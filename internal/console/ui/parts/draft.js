// What somebody has written in a chat and not sent. It stays with the tab: through other chats, a reload and the end of a session.
const prefix = 'parley.draft.';

/** The draft of a chat: get() is {text, reply}, put() changes a part of it. */
export function chatDraft(chat) {
  const get = () => {
    try { return JSON.parse(sessionStorage.getItem(prefix + chat)) || {}; } catch { return {}; }
  };
  const put = (part) => {
    const next = { ...get(), ...part };
    try {
      if (next.text || next.reply) sessionStorage.setItem(prefix + chat, JSON.stringify(next));
      else sessionStorage.removeItem(prefix + chat);
    } catch { /* a storage that is full or switched off keeps nothing */ }
  };
  return { get, put };
}
