"""Runs against a server of its own: PARLEY_PROGRAM is the program. `make clients` sets it."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from parley import Parley, ParleyError, SendFailed, WebhookError, verify_webhook

PROGRAM = os.environ["PARLEY_PROGRAM"]
AYU = "6281234567890@c.us"


def serve(test, respond):
    """Starts a server of our own, which calls respond(handler, body), and returns its address."""

    class Handler(BaseHTTPRequestHandler):
        def do(self):
            respond(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_GET = do_POST = do

        def log_message(self, *_):
            pass

        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


class ClientTest(unittest.TestCase):
    @classmethod
    def start(cls, listen):
        cls.server = subprocess.Popen([PROGRAM, "dev", "--data", cls.data, "--listen", listen, "--no-open"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([PROGRAM, "health", "--ready", "--wait", "2m", "--data", cls.data], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def kill(cls):
        cls.server.kill()
        cls.server.wait()

    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.mkdtemp()
        cls.start("127.0.0.1:0")
        lines = subprocess.run([PROGRAM, "env", "--data", cls.data], check=True, stdout=subprocess.PIPE, text=True).stdout
        cls.env = dict(line.split("=", 1) for line in lines.split())
        cls.parley = Parley(cls.env["PARLEY_URL"], cls.env["PARLEY_TOKEN"])
        cls.admin = Parley(cls.env["PARLEY_URL"], cls.env["PARLEY_ADMIN_TOKEN"])

    @classmethod
    def tearDownClass(cls):
        cls.kill()
        shutil.rmtree(cls.data)

    def test_a_key_sends_once(self):
        first, second = (self.parley.send_text(AYU, "Hello", idempotency_key="greeting-1") for _ in range(2))
        self.assertTrue(first["message_id"].startswith("true_" + AYU))
        self.assertEqual(first["message_id"], second["message_id"])

    def test_errors_have_codes(self):
        with self.assertRaises(ParleyError) as raised:
            self.parley.send("text", {"contact_id": "+62", "message": ""})
        error = raised.exception
        self.assertEqual((error.code, error.status, sorted(error.errors)), ("invalid", 422, ["contact_id", "message"]))
        self.assertTrue(raised.exception.request_id)
        with self.assertRaises(SendFailed) as failed:
            self.parley.send_text("01234567@c.us", "Hello")
        self.assertEqual(failed.exception.code, "not_on_network")

    def test_a_list_is_read_to_its_end(self):
        contact = "6281234567891@c.us"
        for i in range(5):
            self.parley.send_text(contact, str(i))
        want = ["4", "3", "2", "1", "0"]
        self.assertEqual([m["body"] for m in self.parley.list("/api/chat/detail", contact_id=contact, limit=2)], want)  # by offset
        self.assertEqual([m["body"] for m in self.parley.list("/api/messages", contact=contact, limit=2)], want)  # by cursor
        self.assertIn(contact, [c["id"] for c in self.parley.list("/api/contact")])  # a list that comes as a text

    def test_a_file_goes_up_and_comes_down(self):
        uploaded = self.parley.upload("Grüße".encode(), filename="größe (1).txt", type="text/plain")
        file = self.parley.download(uploaded["id"])
        self.assertEqual((file.data.decode(), file.filename, uploaded["filename"]), ("Grüße", "größe (1).txt", "größe (1).txt"))
        self.assertTrue(self.parley.send("file", {"contact_id": AYU, "file": {"url": uploaded["id"]}})["message_id"])

    def test_retries_honour_retry_after_and_keep_the_key(self):
        keys, times = [], []

        def respond(handler, _):
            keys.append(handler.headers["Idempotency-Key"])
            times.append(time.monotonic())
            if len(keys) == 1:
                handler.answer(429, b'{"message":"Slow down.","code":"rate_limited"}', Retry_After="1")
            elif len(keys) == 2:
                handler.close_connection = True  # no response at all
            else:
                handler.answer(200, b'{"success":true,"message":"OK","data":{"status":"SENT","message_id":"true_1@c.us_A","id":"A"}}')

        self.assertEqual(Parley(serve(self, respond), "t").send_text(AYU, "Hello")["id"], "A")
        self.assertEqual((len(keys), len(set(keys))), (3, 1))
        self.assertGreaterEqual(times[1] - times[0], 0.99)

    def test_other_errors_are_not_repeated(self):
        calls = []

        def respond(handler, _):
            calls.append(1)
            handler.answer(409, b'{"message":"No.","code":"conflict"}')

        with self.assertRaises(ParleyError) as raised:
            Parley(serve(self, respond), "t").request("GET", "/api/channel/health")
        self.assertEqual((raised.exception.code, len(calls)), ("conflict", 1))

    def test_a_webhook_is_verified(self):
        arrived = []

        def respond(handler, body):
            arrived.append((dict(handler.headers), body))
            handler.answer(204)

        made = self.admin.request("POST", "/api/manage/webhooks", body={"url": serve(self, respond)})["data"]
        self.admin.request("POST", f"/api/manage/webhooks/{made['id']}/test")
        headers, body = next(one for one in arrived if b"webhook.test" in one[1])
        self.assertEqual(verify_webhook(made["secret"], headers, body)["type"], "webhook.test")
        old = {**{name.lower(): value for name, value in headers.items()}, "webhook-timestamp": "1"}
        for secret, sent, text in ((made["secret"], headers, body + b" "), (made["secret"], old, body), ("", headers, body)):
            with self.assertRaises(WebhookError):
                verify_webhook(secret, sent, text)
        self.admin.request("DELETE", f"/api/manage/webhooks/{made['id']}")

    def test_the_stream_survives_a_killed_server(self):
        def write(text):
            self.parley.request("POST", "/api/sandbox/phones/6281234567890/send", body={"type": "text", "message": text})

        write("zero")
        after = None
        while after is None:  # the message is on its way
            after = next((event["id"] for event in self.parley.list("/api/events/recent", types="message.received", limit=1)), None)
        write("one")
        got = []
        for event in self.parley.events(types=["message.received"], after=after):
            got.append(event["data"]["body"])
            if got[-1] == "one":
                self.kill()
                self.start(urlsplit(self.env["PARLEY_URL"]).netloc)
                write("two")
                write("three")
            if got[-1] == "three":
                break
        self.assertEqual(got, ["one", "two", "three"])


if __name__ == "__main__":
    unittest.main()
