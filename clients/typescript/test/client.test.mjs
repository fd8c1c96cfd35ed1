// Runs against a server of its own: PARLEY_PROGRAM is the program. `make clients` sets it.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Parley, ParleyError, SendFailed, WebhookError, verifyWebhook } from "../dist/index.js";

const program = process.env.PARLEY_PROGRAM;
const data = mkdtempSync(join(tmpdir(), "parley-"));
const ayu = "6281234567890@c.us";
let server, env, parley, admin;

async function start(listen) {
  server = spawn(program, ["dev", "--data", data, "--listen", listen, "--no-open"], { stdio: "ignore" });
  execFileSync(program, ["health", "--ready", "--wait", "2m", "--data", data]);
}

before(async () => {
  await start("127.0.0.1:0");
  const lines = execFileSync(program, ["env", "--data", data], { encoding: "utf8" }).trim().split("\n");
  env = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
  parley = new Parley({ url: env.PARLEY_URL, token: env.PARLEY_TOKEN });
  admin = new Parley({ url: env.PARLEY_URL, token: env.PARLEY_ADMIN_TOKEN });
});

after(async () => {
  server.kill("SIGKILL");
  await once(server, "exit");
  rmSync(data, { recursive: true, force: true });
});

// listen starts a server of our own and returns its address.
async function listen(t, handler) {
  const one = createServer(handler).listen(0, "127.0.0.1");
  await once(one, "listening");
  t.after(() => { one.closeAllConnections(); one.close(); });
  return `http://127.0.0.1:${one.address().port}`;
}

test("a key sends once", async () => {
  const send = () => parley.send("text", { contact_id: ayu, message: "Hello" }, { idempotencyKey: "greeting-1" });
  const first = await send();
  assert.match(first.message_id, /^true_6281234567890@c\.us_/);
  assert.equal((await send()).message_id, first.message_id);
});

test("errors have codes", async () => {
  await assert.rejects(parley.send("text", { contact_id: "+62", message: "" }), (e) =>
    e instanceof ParleyError && e.code === "invalid" && e.status === 422 &&
    "contact_id" in e.errors && "message" in e.errors && e.requestId !== "");
  await assert.rejects(parley.send("text", { contact_id: "01234567@c.us", message: "Hello" }),
    (e) => e instanceof SendFailed && e.code === "not_on_network");
  await assert.rejects(new Parley({ url: env.PARLEY_URL, token: "x" }).call("GET /api/channel/health"), { code: "unauthenticated" });
});

test("a list is read to its end", async () => {
  for (let i = 0; i < 5; i++) await parley.send("text", { contact_id: "6281234567891@c.us", message: `${i}` });
  const bodies = [];
  const query = { contact_id: "6281234567891@c.us", limit: 2 };
  for await (const m of parley.list("/api/chat/detail", { query })) bodies.push(m.body); // by offset
  assert.deepEqual(bodies, ["4", "3", "2", "1", "0"]);
  const found = [];
  const search = { contact: "6281234567891@c.us", limit: 2 };
  for await (const m of parley.list("/api/messages", { query: search })) found.push(m.body); // by cursor
  assert.deepEqual(found, ["4", "3", "2", "1", "0"]);
  const contacts = [];
  for await (const c of parley.list("/api/contact")) contacts.push(c.id); // a list that comes as a text
  assert.ok(contacts.includes(ayu));
});

test("a file goes up and comes down", async () => {
  const uploaded = await parley.upload("Grüße", { filename: "größe (1).txt", type: "text/plain" });
  assert.equal(uploaded.filename, "größe (1).txt");
  const file = await parley.download(uploaded.id);
  assert.equal(new TextDecoder().decode(file.data), "Grüße");
  assert.equal(file.filename, "größe (1).txt");
  const sent = await parley.send("file", { contact_id: ayu, file: { url: uploaded.id } });
  assert.ok(sent.message_id);
});

test("retries honour Retry-After and keep the key", async (t) => {
  const keys = [], times = [];
  const url = await listen(t, (request, response) => {
    keys.push(request.headers["idempotency-key"]);
    times.push(Date.now());
    if (keys.length === 1) response.writeHead(429, { "Retry-After": "1" }).end('{"message":"Slow down.","code":"rate_limited"}');
    else if (keys.length === 2) request.socket.destroy();
    else response.writeHead(200).end('{"success":true,"message":"OK","data":{"status":"SENT","message_id":"true_1@c.us_A","id":"A"}}');
  });
  const sent = await new Parley({ url, token: "t" }).send("text", { contact_id: ayu, message: "Hello" });
  assert.equal(sent.id, "A");
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.ok(times[1] - times[0] >= 990, `waited ${times[1] - times[0]} ms`);
});

test("other errors are not repeated", async (t) => {
  let calls = 0;
  const url = await listen(t, (_, response) => { calls++; response.writeHead(409).end('{"message":"No.","code":"conflict"}'); });
  await assert.rejects(new Parley({ url, token: "t" }).call("GET /api/channel/health"), { code: "conflict" });
  assert.equal(calls, 1);
});

test("a webhook is verified", async (t) => {
  let secret, settle;
  const arrived = new Promise((resolve) => { settle = resolve; });
  const url = await listen(t, async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    settle({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  const made = (await admin.request("POST", "/api/manage/webhooks", { body: { url } })).data;
  secret = made.secret;
  await admin.request("POST", `/api/manage/webhooks/${made.id}/test`);
  const { headers, body } = await arrived;
  const event = verifyWebhook(secret, headers, body);
  assert.equal(event.type, "webhook.test");
  assert.throws(() => verifyWebhook(secret, headers, Buffer.concat([body, Buffer.from(" ")])), WebhookError);
  assert.throws(() => verifyWebhook(secret, { ...headers, "webhook-timestamp": "1" }, body), WebhookError);
  assert.throws(() => verifyWebhook("", headers, body), WebhookError);
  await admin.request("DELETE", `/api/manage/webhooks/${made.id}`);
});

test("the stream survives a killed server", async () => {
  const stop = new AbortController();
  const got = [];
  const write = (message) => parley.call("POST /api/sandbox/phones/{number}/send",
    { path: { number: "6281234567890" }, body: { type: "text", message } });
  await write("zero");
  let after;
  while (!after) { // the message is on its way
    after = (await parley.call("GET /api/events/recent", { query: { types: "message.received", limit: 1 } })).data[0]?.id;
  }
  const following = (async () => {
    for await (const event of parley.events({ types: ["message.received"], after, signal: stop.signal })) {
      if (event.type !== "message.received") continue;
      got.push(event.data.body);
      if (event.data.body === "one") {
        server.kill("SIGKILL");
        await once(server, "exit");
        await start(new URL(env.PARLEY_URL).host);
        await write("two");
        await write("three");
      }
      if (event.data.body === "three") break;
    }
  })();
  await write("one");
  await following;
  stop.abort();
  assert.deepEqual(got, ["one", "two", "three"]);
});
