"""A client of Parley, the self-hosted WhatsApp gateway. It uses the standard library only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

from . import types

if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["text", "image", "video", "file", "voice", "sticker", "location", "contact", "poll", "template", "forward"]

__all__ = ["File", "Parley", "ParleyError", "SendFailed", "WebhookError", "types", "verify_webhook"]


class ParleyError(Exception):
    """An error that the server returned. Decide by ``code``; ``message`` is for people and may change."""

    def __init__(self, status: int, code: str, message: str, errors: Dict[str, List[str]], request_id: str, retry_after: Optional[float]):
        super().__init__(message)
        self.status = status
        self.code = code  # one of types.ErrorCode, or "http" if the response is not one of the server's own
        self.message = message
        self.errors = errors  # what is wrong, by field, if code is "invalid"
        self.request_id = request_id
        self.retry_after = retry_after  # after how many seconds to try again, if the server said so


class SendFailed(Exception):
    """A message that the network refused. The server stored it as FAILED."""

    def __init__(self, data: types.SendAnswerData):
        super().__init__(data["error"]["message"])
        self.code = data["error"]["code"]
        self.data = data


class WebhookError(Exception):
    """A webhook call that Parley did not make, or made too long ago."""


class File(NamedTuple):
    data: bytes
    type: str
    filename: str  # empty if it has no name


class Parley:
    """A client of one server. It needs no closing, and several threads can use it.

    ``url`` and ``token`` are by default PARLEY_URL and PARLEY_TOKEN of the environment; ``channel`` names the channel of a Global token.
    A request is repeated up to ``retries`` times. ``timeout`` is the longest wait for one attempt in seconds; a longer Retry-After
    ends the retries.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, channel: Optional[str] = None, retries: int = 4,
                 timeout: float = 60):
        self._url = urlsplit((url or os.environ["PARLEY_URL"]).rstrip("/"))
        self._token = token or os.environ["PARLEY_TOKEN"]
        self._channel = channel
        self._retries = retries
        self._timeout = timeout

    def send(self, kind: Kind, message: Mapping[str, Any], *, idempotency_key: Optional[str] = None,
             channel: Optional[str] = None) -> types.SendAnswerData:
        """Sends a message and returns it. If the network refuses it, this raises SendFailed."""
        answer = self.request("POST", f"/api/send-message/{kind}", body=message, idempotency_key=idempotency_key, channel=channel)
        if answer["data"].get("error"):
            raise SendFailed(answer["data"])
        return cast("types.SendAnswerData", answer["data"])

    def send_text(self, contact_id: str, message: str, *, idempotency_key: Optional[str] = None) -> types.SendAnswerData:
        return self.send("text", {"contact_id": contact_id, "message": message}, idempotency_key=idempotency_key)

    def list(self, path: str, **query: Any) -> Iterator[Any]:
        """Iterates over all pages of a list, for example ``list("/api/messages", limit=100)``."""
        seen = int(query.get("offset", 0))
        while True:
            answer = self.request("GET", path, query=query)
            yield from answer["data"]
            meta = answer.get("meta", {})
            if meta.get("next_cursor"):
                query["cursor"] = meta["next_cursor"]
                query.pop("offset", None)
            elif "next_cursor" not in meta and meta.get("has_next_page"):
                seen += len(answer["data"])
                query["offset"] = seen
            else:
                return

    def upload(self, data: bytes, *, filename: str = "", type: str = "application/octet-stream",
               idempotency_key: Optional[str] = None) -> types.UploadAnswerData:
        """Stores a file for later messages, which name its ``id`` in ``file.url``."""
        headers = {"Content-Type": type}
        if filename:
            headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
        _, body = self._repeat("POST", "/api/media", headers, data, idempotency_key, None)
        return cast("types.UploadAnswerData", json.loads(body)["data"])

    def download(self, id_or_url: str) -> File:
        """Fetches the file of a message or an upload by its id or ``media.url``. It waits while an inbound file is on its way."""
        path = f"/api/media/{id_or_url}" if id_or_url.startswith("med_") else urlsplit(id_or_url).path
        headers, body = self._repeat("GET", path, {}, None, None, None)
        named = re.search(r"filename\*=utf-8''([^;]+)|filename=\"?([^\";]+)", headers.get("Content-Disposition", ""), re.I)
        return File(body, headers.get("Content-Type", ""), unquote(named[1] or named[2]) if named else "")

    def events(self, *, types: Optional[List[str]] = None, channel: Optional[str] = None,
               after: Optional[str] = None) -> Iterator[types.Event]:
        """Follows the events. After a broken connection or a restart it goes on with the next one, without a gap.

        To begin where an earlier program ended, give the ``id`` of its last event as ``after``.
        """
        path = "/api/events" + (f"?{urlencode({'types': ','.join(types)})}" if types else "")
        failures = 0
        while True:
            pause = 0.5
            try:
                for id, data in self._stream(path, channel, after):
                    failures = 0
                    after = id or after
                    if data:
                        yield json.loads(data)
            except ParleyError as error:
                if error.status < 500 and error.status != 429:
                    raise
                failures += 1
                pause = error.retry_after or pause
            except (OSError, http.client.HTTPException):
                failures += 1
            time.sleep(min(30, pause * 2 ** max(0, failures - 1)))

    def _stream(self, path: str, channel: Optional[str], last: Optional[str]) -> Iterator[Tuple[str, str]]:
        headers = {"Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        connection, response = self._open("GET", path, headers, None, channel, 45)  # a comment comes every 15 seconds
        try:
            id = data = ""
            for raw in response:
                line = raw.decode().rstrip("\r\n")
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "id":
                    id = value
                elif name == "data":
                    data += value
                elif line == "" and (id or data):
                    yield id, data
                    id = data = ""
        finally:
            connection.close()

    def request(self, method: str, path: str, *, body: Any = None, query: Optional[Mapping[str, Any]] = None,
                idempotency_key: Optional[str] = None, channel: Optional[str] = None) -> Any:
        """Calls any operation of the API and returns its JSON."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        _, text = self._repeat(method, path + (f"?{urlencode(given)}" if given else ""), headers, data, idempotency_key, channel)
        try:
            return json.loads(text)  # some lists come as a text
        except ValueError:
            return text.decode()

    def _repeat(self, method: str, path: str, headers: Dict[str, str], body: Optional[bytes], key: Optional[str],
                channel: Optional[str]) -> Tuple[Mapping[str, str], bytes]:
        """Repeats a request until it succeeds or it makes no sense any more. All attempts have one idempotency key."""
        if method != "GET":
            headers = {**headers, "Idempotency-Key": key or str(uuid.uuid4())}
        for tries in range(self._retries + 1):
            pause = min(8, 0.25 * 2**tries) * random.uniform(0.5, 1)
            try:
                connection, response = self._open(method, path, headers, body, channel, self._timeout)
                try:
                    return response.headers, response.read()
                finally:
                    connection.close()
            except ParleyError as error:
                pause = pause if error.retry_after is None else error.retry_after
                if error.status not in (429, 502, 503, 504) or tries == self._retries or pause > self._timeout:
                    raise
            except (OSError, http.client.HTTPException):
                if tries == self._retries:
                    raise
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _open(self, method: str, path: str, headers: Dict[str, str], body: Optional[bytes], channel: Optional[str],
              timeout: float) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Makes one attempt and returns the response, unread."""
        connect = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = connect(self._url.netloc, timeout=timeout)
        sent = {"Accept": "application/json, */*", "Authorization": f"Bearer {self._token}", **headers}
        if channel or self._channel:
            sent["X-Channel"] = cast(str, channel or self._channel)
        try:
            connection.request(method, self._url.path + path, body, sent)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            text = response.read()
        except BaseException:
            connection.close()
            raise
        connection.close()
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {}  # not from the server itself
        after = response.headers.get("Retry-After", "")
        raise ParleyError(response.status, problem.get("code", "http"), problem.get("message", f"{response.status} {response.reason}"),
                          problem.get("errors", {}), response.headers.get("X-Request-Id", ""), float(after) if after.isdecimal() else None)


def verify_webhook(secret: str, headers: Mapping[str, str], body: Union[bytes, str], tolerance: float = 300) -> types.Event:
    """Checks that Parley made a webhook call less than five minutes ago, and returns its event.

    ``headers`` are those of the request and ``body`` is exactly what arrived. It raises WebhookError. An event can arrive twice: store
    the ids that you have handled.
    """
    raw = body.encode() if isinstance(body, str) else body
    read = {name.lower(): value for name, value in headers.items()}
    id, timestamp = read.get("webhook-id", ""), read.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookError("The call is too old, or its time is wrong.")
    key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
    if not key:
        raise WebhookError("The secret is empty.")
    want = b"v1," + base64.b64encode(hmac.new(key, f"{id}.{timestamp}.".encode() + raw, hashlib.sha256).digest())
    if not any(hmac.compare_digest(want, given.encode()) for given in read.get("webhook-signature", "").split(" ")):
        raise WebhookError("The signature does not match.")
    return cast("types.Event", json.loads(raw))
