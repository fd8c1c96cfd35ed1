// The composer of a simulated phone: it sends the text with the ticket in the page's address, and shows the reply.

const number = document.querySelector("main").dataset.number;
const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
const chat = document.getElementById("chat");
const state = document.getElementById("state");
const form = document.getElementById("composer");
const text = document.getElementById("text");
const button = form.querySelector("button");

// show adds a message to the chat, with a word for those who cannot see whose it is.
function show(body, own) {
  const item = document.createElement("li");
  item.className = own ? "own" : "theirs";
  const whose = document.createElement("span");
  whose.className = "unseen";
  whose.textContent = own ? "You: " : "Channel: ";
  item.append(whose, body);
  chat.append(item);
}

// send sends the text and returns the reply; null: none came.
async function send(body) {
  const response = await fetch(`/phone/${number}/send`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket, text: body }),
  });
  const result = await response.json();
  if (!response.ok) throw new Error(result.message);
  return result.data.answer;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = text.value;
  if (button.disabled || body.trim() === "") return;
  button.disabled = true;
  state.textContent = "Sending…";
  try {
    const reply = await send(body);
    show(body, true);
    text.value = "";
    if (reply === null) {
      state.textContent = "Sent. No reply arrived.";
    } else {
      show(reply, false);
      state.textContent = "Sent. A reply arrived.";
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
  state.textContent = "The address is incomplete: the part after # is missing. Copy the whole link.";
  button.disabled = true;
}
