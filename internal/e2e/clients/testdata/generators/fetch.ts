// Uses the types of openapi-typescript with openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./fetch/schema.js";
import { ayu, check, eventually, png } from "./check.js";

const headers = { Authorization: `Bearer ${process.env["PARLEY_TOKEN"]}` };
const parley = createClient<paths>({ baseUrl: process.env["PARLEY_URL"]!, headers });

const sent = await parley.POST("/api/send-message/text", { body: { contact_id: ayu, message: "Hello" } });
if (sent.error) throw new Error(`${sent.error.code}: ${sent.error.message}`);
check("text", sent.data.data.message_id.startsWith("true_"));

const wrong = await parley.POST("/api/send-message/text", { body: { contact_id: "+62", message: "" } });
check("422", wrong.error !== undefined && "errors" in wrong.error && "contact_id" in wrong.error.errors);

const uploaded = await parley.POST("/api/media", {
  body: png as never, bodySerializer: (body: unknown) => body as Blob, headers: { "Content-Type": "application/octet-stream" },
});
check("upload", uploaded.data?.data.mimetype === "image/png");
const image = await parley.POST("/api/send-message/image", { body: { contact_id: ayu, caption: "A dot", file: { url: uploaded.data!.data.id } } });
check("image", image.data?.data.message.details.mimetype === "image/png");
const file = await parley.GET("/api/media/{id}", { params: { path: { id: uploaded.data!.data.id } }, parseAs: "arrayBuffer" });
check("download", (file.data as unknown as ArrayBuffer).byteLength === png.size);

const chat = await parley.GET("/api/chat/detail", { params: { query: { contact_id: ayu } } });
check("chat", chat.data!.data.length >= 2);
const poll = await parley.POST("/api/send-message/poll", { body: { contact_id: ayu, title: "When?", options: ["Now", "Later"], is_multiple_answer: false } });
check("poll", poll.data?.success === true);
const reaction = await parley.PUT("/api/send-message/reaction", { body: { message_id: sent.data.data.message_id, reaction: "👍" } });
check("reaction", reaction.data?.success === true);
const link = await parley.POST("/api/otp/link/request", { body: { contact_id: ayu, expires: 300 } });
const state = await parley.GET("/api/otp/link/{id}", { params: { path: { id: link.data!.data.id } } });
check("link", state.data?.data.status === "PENDING");
await parley.POST("/api/sandbox/phones/{number}/send", { params: { path: { number: "6281234567890" } }, body: { type: "text", message: "Thank you!" } });
check("events", await eventually(async () => {
  const events = await parley.GET("/api/events/recent", { params: { query: { types: "message.received" } } });
  return events.data!.data.some((event) => body(event) === "Thank you!");
}));

// body compiles only if the type of an event tells what its data is.
function body(event: components["schemas"]["Event"]): string {
  return event.type === "message.received" ? event.data.body : "";
}
