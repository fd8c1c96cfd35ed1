// Uses the functions of orval. It writes a file as JSON where a body may be a form or the file itself, so this uploads nothing.
import type { Event } from "./orval/api.js";
import { listGroups, listRecentEvents, react, readChat, channelHealth, readLink, requestLink, sendAsPhone, sendLocation, sendPoll, sendText } from "./orval/api.js";
import { ayu, check, eventually } from "./check.js";

const plain = globalThis.fetch;
globalThis.fetch = (url, init) => plain(process.env["PARLEY_URL"] + String(url),
  { ...init, headers: { ...(init?.headers as Record<string, string>), Authorization: `Bearer ${process.env["PARLEY_TOKEN"]}` } });

const sent = await sendText({ contact_id: ayu, message: "Hello" });
if (sent.status !== 200) throw new Error(`${sent.data.code}: ${sent.data.message}`);
check("text", sent.data.data.message_id.startsWith("true_"));
const wrong = await sendText({ contact_id: "+62", message: "" });
check("422", wrong.status === 422 && "contact_id" in wrong.data.errors);
const health = await channelHealth();
check("health", health.status === 200 && health.data.data.status === "WORKING");
const groups = await listGroups();
check("groups", groups.status === 200 && Array.isArray(groups.data.data));
const place = await sendLocation({ contact_id: ayu, latitude: "-6.2", longitude: "106.8" });
check("place", place.status === 200);
const chat = await readChat({ contact_id: ayu });
check("chat", chat.status === 200 && chat.data.data.length >= 2);
const poll = await sendPoll({ contact_id: ayu, title: "When?", options: ["Now", "Later"], is_multiple_answer: false });
check("poll", poll.status === 200 && poll.data.success);
const reaction = await react({ message_id: sent.data.data.message_id, reaction: "👍" });
check("reaction", reaction.status === 200);
const link = await requestLink({ contact_id: ayu, expires: 300 });
if (link.status !== 200) throw new Error(link.data.message);
const state = await readLink(link.data.data.id);
check("link", state.status === 200 && state.data.data.status === "PENDING");
await sendAsPhone("6281234567890", { type: "text", message: "Thank you!" });
check("events", await eventually(async () => {
  const events = await listRecentEvents({ types: "message.received" });
  return events.status === 200 && events.data.data.some((event) => body(event) === "Thank you!");
}));

// body compiles only if the type of an event tells what its data is.
function body(event: Event): string {
  return event.type === "message.received" ? event.data.body : "";
}
