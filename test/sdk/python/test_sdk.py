"""The blocking Python client against the service. The asynchronous one, from which it is generated, is in test_async.py."""

from __future__ import annotations

import base64
import hmac
import inspect
import json
import pickle
import threading
import time
import typing
import unittest
from http.server import BaseHTTPRequestHandler
from typing import Any, Dict, List

import httpx
from harness import BASE, SESSION, Failing, Receiver, busy, client_with, eventually, refused, server

import agent_identity
from agent_identity import ApiConnectionError, ApiError, Client, InvalidSignature, login, types, verify_webhook


class Calls(unittest.TestCase):
    def test_two_agents_exchange_mail(self) -> None:
        with Client() as client:
            ada, grace = client.create_identity("py-ada"), client.create_identity("py-grace")
            here, there = ada.identities.read()["email"], grace.identities.read()["email"]
            ada.mail_settings.allow(address=there)
            grace.mail_settings.allow(address=here)
            question = ada.send(to=[there], subject="Numbers", text="Shall we?")
            arrived = eventually(lambda: grace.messages.list(from_=here)["messages"])[0]
            message = grace.messages.read(arrived["id"])
            self.assertEqual(message["subject"], "Numbers")
            self.assertRegex(message["text_reply"] or "", r"^Shall we\?")
            grace.reply(message, text="Yes.")
            # A message that arrived before the wait began counts if it is newer than the one given.
            answer = ada.wait_for_message(query="subject:Numbers", from_=there, after=question["id"])
            assert answer is not None
            self.assertRegex(answer["text_reply"] or "", r"^Yes\.")
            self.assertIsNone(ada.wait_for_message(query="subject:never", timeout_seconds=1))

    def test_lists_are_iterated_page_by_page(self) -> None:
        seen = Failing()
        with client_with(seen) as client:
            vault = client.create_identity("py-pages").vault
            for n in range(5):
                vault.put(f"secret.{n}", value=f"value {n}", description=None)
            before = len(seen.seen)
            names = sorted(secret["name"] for secret in vault.iter(limit=2))
            self.assertEqual(names, [f"secret.{n}" for n in range(5)])
            self.assertEqual(len(seen.seen) - before, 3)
            self.assertEqual(vault.value("secret.3")["value"], "value 3")
            vault.remove("secret.3")
            with self.assertRaises(ApiError) as raised:
                vault.value("secret.3")
            self.assertEqual((raised.exception.status, raised.exception.code), (404, "not_found"))

    def test_a_response_that_is_not_json_is_returned_as_it_is(self) -> None:
        with Client() as client:
            response = client.audit.export()
            self.assertIn("application/jsonl", response.headers["content-type"])
            self.assertGreater(len(response.text), 0)

    def test_members_of_path_query_and_body_arrive(self) -> None:
        requests: List[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            request.read()
            requests.append(request)
            return httpx.Response(200, json={}, request=request)

        with client_with(Failing(answer, answer)) as client:
            client.vault.put("a/b c", value="ü", identity="ada")
            client.identity("ada").messages.list(seen=False, from_="x@example.org", limit=2)
        put, listed = requests
        self.assertEqual(put.url.raw_path, b"/api/vault/secrets/a%2Fb%20c?identity=ada")
        self.assertEqual(json.loads(put.content), {"value": "ü"})
        self.assertEqual(dict(listed.url.params), {"seen": "false", "from": "x@example.org", "limit": "2"})
        self.assertTrue(put.headers["user-agent"].startswith("agent-identity-python/"))


class Errors(unittest.TestCase):
    def test_have_the_members_of_the_problem(self) -> None:
        with Client() as client, self.assertRaises(ApiError) as raised:
            client.identities.create(handle="x")
        error = raised.exception
        self.assertEqual((error.status, error.code, error.agent_hint), (400, "handle_invalid", "fix_call"))
        self.assertRegex(error.request_id or "", "^req_")
        self.assertTrue(str(error).startswith("handle_invalid: "))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((copy.status, copy.code), (400, "handle_invalid"))

    def test_of_an_unreachable_or_silent_service_are_connection_errors(self) -> None:
        with Client("k", "http://127.0.0.1:9", retries=0) as client:
            with self.assertRaisesRegex(ApiConnectionError, "is unreachable"):
                client.session.whoami()

        class Trickling(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b" ")
                        time.sleep(0.05)
                except OSError:
                    pass

            def log_message(self, *_: Any) -> None:
                pass

        with server(Trickling) as url, Client("k", url, retries=0) as client:
            with self.assertRaisesRegex(ApiConnectionError, r"gave no response within 0\.3 s"):
                client.session.whoami(request_options={"timeout": 0.3})

    def test_of_a_proxy_are_api_errors(self) -> None:
        forbidden = Failing(lambda request: httpx.Response(403, text="<h1>Forbidden</h1>", request=request))
        with client_with(forbidden) as client, self.assertRaises(ApiError) as raised:
            client.session.whoami()
        self.assertEqual((raised.exception.code, raised.exception.agent_hint), ("unexpected_response", "stop"))


class Retries(unittest.TestCase):
    def test_have_the_key_of_the_first_attempt_so_that_the_action_happens_once(self) -> None:
        real = httpx.HTTPTransport()
        self.addCleanup(real.close)

        def lose(request: httpx.Request) -> httpx.Response:
            real.handle_request(request).read()
            raise httpx.ReadError("connection reset", request=request)

        with Client() as client:
            client.create_identity("py-once")
        lossy = Failing(lose)
        with client_with(lossy) as client:
            ada = client.identity("py-once")
            draft = ada.sending.draft(subject="Once", text="x")
            self.assertEqual(len(lossy.seen), 2)
            self.assertEqual(lossy.seen[0]["idempotency-key"], lossy.seen[1]["idempotency-key"])
            self.assertEqual([one["id"] for one in ada.sending.iter_drafts()], [draft["id"]])

    def test_follow_a_busy_service_and_end(self) -> None:
        back = Failing(busy, refused, busy)
        with client_with(back) as client:
            self.assertIn("org", client.session.whoami())
        self.assertEqual(len(back.seen), 4)
        gone = Failing(busy, busy)
        with client_with(gone, retries=1) as client, self.assertRaises(ApiError) as raised:
            client.session.whoami()
        self.assertEqual((raised.exception.status, len(gone.seen)), (503, 2))

    def test_are_not_made_if_the_outcome_is_unknown_or_the_wait_is_long(self) -> None:
        for answer, error in ((refused, ApiConnectionError), (busy, ApiError)):
            unknown = Failing(answer)
            with client_with(unknown) as client, self.assertRaises(error):
                client.device_login.start(name="sdk")
            self.assertEqual(len(unknown.seen), 1)
        late = {"retry-after": "3600"}
        long = Failing(lambda request: httpx.Response(429, headers=late, request=request))
        with client_with(long) as client, self.assertRaises(ApiError) as raised:
            client.session.whoami()
        self.assertEqual((raised.exception.agent_hint, len(long.seen)), ("wait", 1))
        limited = {"retry-after": "0"}
        soon = Failing(lambda request: httpx.Response(429, headers=limited, request=request))
        with client_with(soon) as client:
            client.device_login.start(name="sdk")
        self.assertEqual(len(soon.seen), 2)


class Cut(httpx.SyncByteStream):
    """Ends after the first Event."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __iter__(self) -> typing.Iterator[bytes]:
        for chunk in self._response.iter_raw():
            yield chunk
            if b"data:" in chunk:
                return

    def close(self) -> None:
        self._response.close()


class Stream(unittest.TestCase):
    def test_continues_after_the_last_event_when_the_connection_is_lost(self) -> None:
        real = httpx.HTTPTransport()
        self.addCleanup(real.close)
        opened = threading.Event()

        def cut(request: httpx.Request) -> httpx.Response:
            response = real.handle_request(request)
            opened.set()
            return httpx.Response(response.status_code, headers=response.headers, stream=Cut(response))

        with Client() as client:
            ada = client.create_identity("py-stream")
            connections = Failing(cut)
            events: List[types.Event] = []

            def read() -> None:
                with client_with(connections) as other:
                    for event in other.identity("py-stream").stream():
                        events.append(event)
                        if len([one for one in events if one["type"] == "card.updated"]) == 3:
                            return

            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            self.assertTrue(opened.wait(60))
            ada.cards.patch(name="One")
            eventually(lambda: len(events) > 0)
            ada.cards.patch(name="Two")
            ada.cards.patch(name="Three")
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertEqual(len({event["id"] for event in events}), len(events))
            self.assertEqual(connections.seen[0].get("last-event-id"), None)
            self.assertEqual(connections.seen[1].get("last-event-id"), events[0]["id"])

    def test_fails_if_the_service_refuses_it(self) -> None:
        with Client("svc_admin_wrong") as client, self.assertRaises(ApiError) as raised:
            next(client.stream())
        self.assertEqual(raised.exception.code, "unauthenticated")

    def test_reads_frames_that_are_split_anywhere(self) -> None:
        from agent_identity._frames import FrameParser

        text = "\ufeff: hello\r\nid: 0\n\n: beat\n\nid: 1\ndata: {\"a\":\r\rid:2\r\ndata: x\u2028y\ndata:\n\r\ndata: ü\n\n".encode()
        for size in range(1, len(text)):
            parser = FrameParser()
            found = [one for at in range(0, len(text), size) for one in parser.feed(text[at : at + size])]
            self.assertEqual([(one.id, one.data) for one in found], [("0", ""), ("1", '{"a":'), ("2", "x\u2028y\n"), (None, "ü")])


def signed_at(secret: str, seconds_ago: int, body: bytes) -> Dict[str, str]:
    """Returns the headers of a delivery with a valid signature that was made a while ago."""
    at = str(int(time.time()) - seconds_ago)
    key = base64.b64decode(secret[len("whsec_") :])
    digest = hmac.new(key, f"evt_1.{at}.".encode() + body, "sha256").digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"Webhook-Id": "evt_1", "Webhook-Timestamp": at, "Webhook-Signature": signature}


class Webhooks(unittest.TestCase):
    def test_deliveries_are_verified(self) -> None:
        with server(Receiver) as url, Client() as client:
            ada = client.create_identity("py-hooked")
            secret = ada.webhooks.create(url=url, event_types=["*"])["signing_secret"]
            assert secret is not None
            ada.cards.patch(name="Hooked")
            got = eventually(lambda: [one for one in Receiver.got if b'"card.updated"' in one["body"]])[0]
        headers, body = got["headers"], got["body"]
        self.assertEqual(verify_webhook(headers, body, secret)["type"], "card.updated")
        self.assertEqual(verify_webhook(signed_at(secret, 60, body), body, secret)["type"], "card.updated")
        old = "whsec_" + base64.b64encode(b"old").decode()
        self.assertEqual(verify_webhook(headers, body.decode(), [old, secret])["type"], "card.updated")
        lower = {name.lower(): value for name, value in headers.items()}
        refused = [
            (headers, body.replace(b"card.updated", b"card.updateD"), secret),
            (headers, body, old),
            (signed_at(secret, 301, body), body, secret),
            (signed_at(secret, -302, body), body, secret),
            ({**lower, "webhook-id": "evt_other"}, body, secret),
            ({**lower, "webhook-timestamp": str(int(time.time()) - 301)}, body, secret),
            ({**lower, "webhook-timestamp": "soon"}, body, secret),
            ({**lower, "webhook-signature": "v1,%%%ü"}, body, secret),
            ({}, body, secret),
        ]
        for one in refused:
            with self.assertRaises(InvalidSignature):
                verify_webhook(*one)


class Login(unittest.TestCase):
    def test_gives_the_program_a_key(self) -> None:
        shown: List[str] = []

        def approve(url: str, code: str) -> None:
            shown.extend([url, code])
            with Client() as holder:
                holder.device_confirmation.approve(code)

        granted = login("py program", approve, scopes=["identity:read"], expires_in_days=1)
        self.assertIn(shown[1], shown[0])
        with Client(granted["key"]) as client:
            caller = client.session.whoami()["caller"]
        self.assertEqual((caller["kind"], caller["key_name"]), ("admin_key", "py program"))


class Types(unittest.TestCase):
    def test_resolve_at_run_time(self) -> None:
        found = [one for one in vars(types).values() if isinstance(one, type) and hasattr(one, "__total__")]
        self.assertGreater(len(found), 100)
        for one in found:
            typing.get_type_hints(one)

    def test_reply_takes_what_send_takes(self) -> None:
        identity = agent_identity.Identity
        reply = set(inspect.signature(identity.reply).parameters)
        send = set(inspect.signature(type(Client().identity("ada").sending).send).parameters)
        self.assertEqual(reply, (send - {"reply_to_message", "in_reply_to", "references"}) | {"message"})

    def test_settings_are_printed_without_the_key(self) -> None:
        printed = repr(Client(SESSION, BASE)._transport.settings)
        self.assertIn(BASE, printed)
        self.assertNotIn(SESSION, printed)


if __name__ == "__main__":
    unittest.main()
