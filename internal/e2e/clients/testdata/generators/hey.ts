// Uses the functions of hey-api.
import type { Event } from "./hey/index.js";
import { client } from "./hey/client.gen.js";
import { listRecentEvents, react, readChat, readLink, readMedia, requestLink, sendAsPhone, sendImage, sendPoll, sendText, uploadMedia } from "./hey/index.js";
import { ayu, check, eventually, png } from "./check.js";

client.setConfig({ baseUrl: process.env["PARLEY_URL"]!, auth: () => process.env["PARLEY_TOKEN"] });

const sent = await sendText({ body: { contact_id: ayu, message: "Hello" } });
if (sent.error) throw new Error(`${sent.error.code}: ${sent.error.message}`);
check("text", sent.data.data.message_id.startsWith("true_"));

const wrong = await sendText({ body: { contact_id: "+62", message: "" } });
check("422", wrong.error !== undefined && "errors" in wrong.error && "contact_id" in wrong.error.errors);

const uploaded = await uploadMedia({ body: { file: png } });
check("upload", uploaded.data?.data.mimetype === "image/png");
const image = await sendImage({ body: { contact_id: ayu, caption: "A dot", file: { url: uploaded.data!.data.id } } });
check("image", image.data?.data.message.details.mimetype === "image/png");
const file = await readMedia({ path: { id: uploaded.data!.data.id }, parseAs: "blob" });
check("download", (file.data as Blob).size === png.size);

const chat = await readChat({ query: { contact_id: ayu } });
check("chat", chat.data!.data.length >= 2);
const poll = await sendPoll({ body: { contact_id: ayu, title: "When?", options: ["Now", "Later"], is_multiple_answer: false } });
check("poll", poll.data?.success === true);
const reaction = await react({ body: { message_id: sent.data.data.message_id, reaction: "👍" } });
check("reaction", reaction.data?.success === true);
const link = await requestLink({ body: { contact_id: ayu, expires: 300 } });
const state = await readLink({ path: { id: link.data!.data.id } });
check("link", state.data?.data.status === "PENDING");
await sendAsPhone({ path: { number: "6281234567890" }, body: { type: "text", message: "Thank you!" } });
check("events", await eventually(async () => {
  const events = await listRecentEvents({ query: { types: "message.received" } });
  return events.data!.data.some((event) => body(event) === "Thank you!");
}));

// body compiles only if the type of an event tells what its data is.
function body(event: Event): string {
  return event.type === "message.received" ? event.data.body : "";
}
