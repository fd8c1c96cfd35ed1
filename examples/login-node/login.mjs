// Logs people in with a code or a link by WhatsApp.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { Parley } from "parley-client";

const parley = new Parley();
const page = `<!doctype html><title>Login</title>
<form method=post action=/login/code><input name=number placeholder=6281234567890><button>Send me a code</button></form>
<form method=post action=/login/check><input name=code placeholder=123456><button>Log in</button></form>
<form method=post action=/login/link><input name=number placeholder=6281234567890><button>Give me a link</button></form>
<a href=/login/state>I have sent the message</a>`;

const sessions = new Map(); // id → { contact, link, user }

const routes = {
  "POST /login/code": async (session) => {
    await parley.requestCode(session.contact, { name: "Toko Ayu" });
    return "We have sent you a code.";
  },
  "POST /login/check": async (session, form) => {
    const body = { contact_id: session.contact, code: form.get("code") ?? "" };
    return welcome(session, (await parley.call("POST /api/otp/code/validate", { body })).data.status);
  },
  "POST /login/link": async (session) => {
    const body = { contact_id: session.contact, expires: 300, name: "Toko Ayu" };
    const { id, link } = (await parley.call("POST /api/otp/link/request", { body })).data;
    session.link = id; // only this session is logged in by it
    return link;
  },
  "GET /login/state": async (session) => {
    if (!session.link) throw new Error("ask for a link first");
    return welcome(session, (await parley.call("GET /api/otp/link/{id}", { path: { id: session.link } })).data.status);
  },
};

function welcome(session, status) {
  if (status !== "APPROVED") throw new Error(`not logged in: ${status}`);
  session.user = session.contact;
  delete session.link;
  return `Welcome, ${session.user}`;
}

// findSession returns that of the request. A number begins a new login; a code never brings its own number.
function findSession(request, response, form) {
  const number = form.get("number");
  if (number && /^[0-9]{7,15}$/.test(number)) {
    const id = randomBytes(16).toString("hex");
    sessions.set(id, { contact: `${number}@c.us` });
    response.setHeader("Set-Cookie", `session=${id}; Path=/; HttpOnly; SameSite=Lax`);
    return sessions.get(id);
  }
  const [, id] = /session=([0-9a-f]+)/.exec(request.headers.cookie ?? "") ?? [];
  return sessions.get(id) ?? {};
}

const server = createServer(async (request, response) => {
  if (request.url === "/") return response.setHeader("Content-Type", "text/html").end(page);
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return response.writeHead(404).end();
  let text = "";
  for await (const chunk of request) text += chunk;
  const form = new URLSearchParams(text);
  try {
    response.end(`${await route(findSession(request, response, form), form)}\n`);
  } catch (problem) {
    response.writeHead(401).end(`${problem.message}\n`);
  }
});

server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
