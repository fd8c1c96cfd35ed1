"""Answers messages, and continues where it stopped."""

import os
import re
from pathlib import Path

from parley import Parley, SendFailed

HELP = "Send *hours* for our opening hours, or *order* and its number. Anything else goes to a person."
ORDERS = {"1017": "on its way, and arrives tomorrow", "1018": "being packed"}
STATE = Path(os.environ.get("BOT_STATE", "bot.state"))


def answer(text: str) -> str:
    words = text.strip().lower()
    if words == "hours":
        return "We are open from 9 to 18, Monday to Saturday."
    order = re.fullmatch(r"order\s+#?(\d+)", words)
    if order:
        state = ORDERS.get(order[1])
        return f"Order {order[1]} is {state}." if state else f"We have no order {order[1]}."
    return HELP


def main() -> None:
    parley = Parley()
    after = STATE.read_text() if STATE.exists() else None
    for event in parley.events(types=["message.received"], after=after):
        message = event["data"]
        if "group_id" not in message and message["type"] == "text":
            try:
                reply = {"contact_id": message["contact_id"], "message": answer(message["body"]), "reply_to": message["id"]}
                parley.send("text", reply, idempotency_key=event["id"])
            except SendFailed as problem:
                print(f"{message['contact_id']} got no answer: {problem.code}")
        STATE.write_text(event["id"])


if __name__ == "__main__":
    main()
