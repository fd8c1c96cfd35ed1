// The page where the owner of a number links it to one channel. The ticket in its address allows only that.

const main = document.querySelector("main");
const words = JSON.parse(main.dataset.words);
const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
const part = (id) => document.getElementById(id);
const [name, state, hint, picture, code, left, copy, steps, again, ways, number, wrong] =
  ["name", "state", "hint", "picture", "code", "left", "copy", "steps", "again", "ways", "number", "wrong"].map(part);

const byCode = part("by-code");
const byQR = part("by-qr");
const [passkey, line, copyLine, printed, unread, confirm] = ["passkey", "line", "copy-line", "printed", "unread", "confirm"].map(part);

const pollEvery = 1000; // ms
const slowAfter = 5; // s until the page says that it takes longer than usual
const stuckAfter = 15; // s until it says what may be wrong
const quiet = 4; // white squares around a QR code, as its standard wants

let shown = ""; // the step on the screen, so that it is announced once
let drawn = ""; // the code on the screen
let ends = 0; // when it expires, by this machine's clock
let life = 0; // ms that it lasts
let way = {}; // how the last codes were requested, to request new ones
let over = false; // the final state

// fill puts values into a sentence.
function fill(key, values) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// call asks the server with the ticket.
async function call(method, path, body) {
  const request = { method, headers: { Authorization: `Bearer ${ticket}` } };
  if (body) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  const response = await fetch(path, request);
  const said = await response.json();
  if (response.ok) return said.data;
  const problem = new Error(said.message);
  problem.final = response.status === 401;
  throw problem;
}

// show brings the page into one state: a sentence, what belongs to it, and one thing to do.
function show(step, sentence, more = {}) {
  if (shown !== step + sentence) {
    shown = step + sentence;
    main.dataset.state = step;
    state.textContent = sentence;
  }
  hint.textContent = more.hint ?? "";
  picture.hidden = !more.picture;
  code.hidden = !more.code;
  copy.hidden = !more.code || more.confirm || !navigator.clipboard;
  copyLine.hidden = !navigator.clipboard;
  left.hidden = !more.left;
  steps.hidden = !more.steps;
  again.hidden = !more.again;
  again.textContent = more.again ?? "";
  passkey.hidden = !more.passkey;
  confirm.hidden = !more.confirm;
  ways.hidden = !more.ways;
  byCode.hidden = more.ways === "qr";
  byQR.hidden = more.ways === "code";
  if (more.steps) list(more.steps);
}

function list(texts) {
  steps.replaceChildren(...texts.split("|").map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// draw draws a QR code of its rows of 0 and 1.
function draw(rows) {
  const size = rows.length + 2 * quiet;
  let path = "";
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) path += `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`;
  });
  picture.replaceChildren(svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": words.qr_image,
    "shape-rendering": "crispEdges" },
    svg("path", { d: path })));
}

// ring is a circle that empties as time runs out.
const round = 2 * Math.PI * 14;
const rest = svg("circle", { cx: 16, cy: 16, r: 14, "stroke-dasharray": round });
const clock = document.createElement("span");
left.append(svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" }, svg("circle", { cx: 16, cy: 16, r: 14 }), rest), clock);

let timeLeft = () => ""; // the time left, in words

function tick() {
  const remains = Math.max(0, ends - Date.now());
  rest.setAttribute("stroke-dashoffset", life ? round * (1 - remains / life) : 0);
  clock.textContent = timeLeft(Math.ceil(remains / 1000));
}

function minutes(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

// count begins to count down to the end of a code. The server's clock says how long that is.
function count(pairing, now) {
  if (drawn === pairing.code) return;
  drawn = pairing.code;
  ends = Date.now() + (Date.parse(pairing.expires_at) - Date.parse(now));
  life = Date.parse(pairing.expires_at) - Date.parse(pairing.at);
}

// askPasskey shows the line to run. It is replaced only by another one: somebody may be selecting it.
function askPasskey({ at, passkey: { request, expires_at } }, now) {
  const text = "navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(" +
    JSON.stringify(request) + ")}).then((c) => console.log(JSON.stringify(c)))";
  if (line.textContent !== text) line.textContent = text;
  count({ code: text, at, expires_at }, now);
  timeLeft = (seconds) => fill("code_left", { time: minutes(seconds) });
  tick();
}

// render shows the current state.
function render(data) {
  name.textContent = data.name;
  document.title = `${words.title} · ${data.name}`;
  const pairing = data.pairing;
  if (data.status === "WORKING") {
    over = true;
    return show("working", words.working, { hint: words.working_hint });
  }
  if (data.status === "STOPPED") return show("stopped", words.stopped);
  switch (pairing?.step) {
    case "starting": {
      if (pairing.reason) return show("lost", words.lost, { hint: words.lost_hint });
      const waited = (Date.parse(data.timestamp) - Date.parse(pairing.at)) / 1000;
      const slow = waited < slowAfter ? "" : waited < stuckAfter ? words.starting_slow : words.starting_stuck;
      return show("starting", words.starting, { hint: slow });
    }
    case "qr":
      if (!pairing.code) return show("starting", words.starting); // it has just expired; the next one follows
      if (drawn !== pairing.code) draw(pairing.qr);
      count(pairing, data.timestamp);
      timeLeft = (seconds) => fill("qr_left", { n: pairing.n, of: pairing.of, seconds });
      tick();
      return show("qr", words.qr, { picture: true, left: true, steps: words.qr_steps, ways: "code" });
    case "code":
    case "wrong_code": {
      if (!pairing.code) return show("starting", words.starting);
      count(pairing, data.timestamp);
      code.textContent = pairing.code;
      timeLeft = (seconds) => fill("code_left", { time: minutes(seconds) });
      tick();
      const wrongCode = pairing.step === "wrong_code";
      return show("code", wrongCode ? words.wrong_code : words.code,
        { hint: wrongCode ? words.wrong_code_hint : "", code: true, left: true, steps: words.code_steps, ways: "qr" });
    }
    case "paired":
      return show("scanned", words.scanned, { hint: words.scanned_hint });
    case "passkey":
      if (!pairing.passkey) return show("timeout", words.timeout, { hint: words.timeout_hint, again: words.new_codes, ways: true });
      askPasskey(pairing, data.timestamp);
      return show("passkey", words.passkey, { hint: words.passkey_hint, left: true, steps: words.passkey_steps, passkey: true });
    case "confirm":
      code.textContent = pairing.code;
      return show("confirm", words.confirm, { hint: words.confirm_hint, code: true, confirm: true });
    case "timeout":
      return show("timeout", words.timeout, { hint: words.timeout_hint, again: words.new_codes, ways: true });
    case "failed":
      return show("refused", words.refused, { hint: pairing.reason, again: words.try_again, ways: true });
  }
  show("ready", data.reason && data.status === "FAILED" ? data.reason : words.ready, { ways: true });
}

// ask starts to link: with a code if a number is given, else with QR codes.
async function ask(body) {
  way = body;
  wrong.textContent = "";
  for (const button of document.querySelectorAll("button")) button.disabled = true;
  try {
    render(await call("POST", "/pair/begin", body));
  } catch (problem) {
    if (body.number === undefined || problem.final || problem instanceof TypeError) fail(problem);
    else wrong.textContent = problem.message; // beside the field
  } finally {
    for (const button of document.querySelectorAll("button")) button.disabled = false;
  }
}

// answer hands in the response of the passkey, or that the codes are the same.
async function answer(body) {
  try {
    render(await call("POST", "/pair/passkey", body));
  } catch (problem) {
    if (problem.final || problem instanceof TypeError) fail(problem);
    else unread.textContent = problem.message;
  }
}

passkey.addEventListener("submit", (event) => {
  event.preventDefault();
  unread.textContent = "";
  let assertion;
  try {
    assertion = JSON.parse(printed.value);
  } catch {
    unread.textContent = words.passkey_bad;
    return;
  }
  answer({ assertion });
});
copyLine.addEventListener("click", async () => {
  await navigator.clipboard.writeText(line.textContent);
  copyLine.textContent = words.line_copied;
});
confirm.addEventListener("click", () => answer({ confirmed: true }));

// fail shows what went wrong. If the link no longer works, that is final.
function fail(problem) {
  if (problem.final) {
    over = true;
    show("ended", problem.message);
  } else if (problem instanceof TypeError) {
    hint.textContent = words.offline; // the request itself failed
  } else {
    hint.textContent = problem.message;
  }
}

async function poll() {
  try {
    render(await call("GET", "/pair/state"));
  } catch (problem) {
    fail(problem);
  }
  if (!over) setTimeout(poll, pollEvery);
}

byCode.addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ number: number.value });
});
byQR.addEventListener("submit", (event) => {
  event.preventDefault();
  ask({});
});
again.addEventListener("click", () => ask(way));
copy.addEventListener("click", async () => {
  await navigator.clipboard.writeText(code.textContent);
  hint.textContent = fill("copied", { code: code.textContent });
});

if (ticket) {
  setInterval(tick, 1000);
  poll();
} else {
  show("ended", words.no_ticket);
}
