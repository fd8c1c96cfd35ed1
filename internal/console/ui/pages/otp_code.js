// Tries a code.
import { api } from '../api.js';

/** Tries a code and adds what happens to the timeline. */
export async function tryCode({ channel, timeline }, contact, code) {
  const { data, message } = await api.post('/otp/code/validate', { contact_id: contact, code }, { channel });
  if (data.status === 'LOCKED' || data.status === 'EXPIRED') timeline.end(data.status.toLowerCase());
  return { ...data, message };
}
