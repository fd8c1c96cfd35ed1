// The composer of a simulated phone: it sends the text with the ticket in the page's address, and shows the reply.

const main = document.querySelector("main");
const number = main.dataset.number;
const words = JSON.parse(main.dataset.words);
const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
const chat = document.getElementById("chat");
const state = document.getElementById("state");
const form = document.getElementById("composer");
const text = document.getElementById("text");
const button = form.querySelector("button");

// The number as people write it: the country code, then groups. 1 and 7 are whole codes, some have two digits, others three.
const two = /^(2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;
const code = number.slice(0, /^[17]/.test(number) ? 1 : two.test(number) ? 2 : 3);
const shown = `+${code} ${number.slice(code.length).match(/^.{3}|.{1,4}/g).join("-")}`;
main.querySelector("h1").textContent = shown;
document.title = words.title.replace("{number}", shown);

// show adds a message to the chat, with a word for those who cannot see whose it is.
function show(body, own) {
  const item = document.createElement("li");
  item.className = own ? "own" : "theirs";
  const whose = document.createElement("span");
  whose.className = "unseen";
  whose.textContent = `${own ? words.you : words.channel}: `;
  item.append(whose, body);
  chat.append(item);
}

// send sends the text and returns the reply; null: none came.
async function send(body) {
  const response = await fetch(`/phone/${number}/send`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket, text: body }),
  }).catch(() => { throw new Error(words.failed); });
  const result = await response.json();
  if (!response.ok) throw new Error(result.message);
  return result.data.answer;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = text.value;
  if (button.disabled || body.trim() === "") return;
  button.disabled = true;
  state.textContent = words.sending;
  try {
    const reply = await send(body);
    show(body, true);
    text.value = "";
    if (reply === null) {
      state.textContent = words.no_reply;
    } else {
      show(reply, false);
      state.textContent = words.reply;
    }
  } catch (problem) {
    state.textContent = problem.message;
  } finally {
    button.disabled = false;
    text.focus();
  }
});

// Enter sends, as on a phone; with Shift it begins a new line.
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

if (!ticket) {
  state.textContent = words.no_ticket;
  button.disabled = true;
}
