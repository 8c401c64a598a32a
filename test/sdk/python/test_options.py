"""What users of other SDKs expect: classes of errors, options of a call, its attempts, versions, and webhooks of tests."""

from __future__ import annotations

import json
import keyword
import os
import pickle
import re
import time
import unittest
from typing import Any, Dict, List

import httpx
from harness import SESSION, busy, client_with, Failing, refused

import agent_identity as sdk
from agent_identity import API_VERSION, Attempt, Client, sign_webhook, verify_webhook

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BODY = json.dumps({"id": "evt_1", "type": "email.received"})


class Errors(unittest.TestCase):
    def test_have_the_class_of_their_status_and_the_headers(self) -> None:
        kinds = {
            400: sdk.InvalidRequestError,
            401: sdk.AuthenticationError,
            403: sdk.PermissionDeniedError,
            404: sdk.NotFoundError,
            409: sdk.ConflictError,
            412: sdk.ConflictError,
            415: sdk.InvalidRequestError,
            422: sdk.ConflictError,
            429: sdk.RateLimitError,
            500: sdk.ServiceError,
            503: sdk.ServiceError,
        }
        for status, kind in kinds.items():

            def answer(request: httpx.Request) -> httpx.Response:
                return httpx.Response(status, headers={"request-id": "req_1"}, request=request)

            with client_with(Failing(answer), retries=0) as client, self.assertRaises(sdk.ApiError) as raised:
                client.session.whoami()
            self.assertIs(type(raised.exception), kind)
            self.assertEqual(raised.exception.headers["request-id"], "req_1")
            self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).status, status)


class Options(unittest.TestCase):
    def test_of_a_call_replace_the_key_of_the_client(self) -> None:
        with Client("svc_id_wrong") as client:
            with self.assertRaises(sdk.AuthenticationError):
                client.session.whoami()
            self.assertEqual(client.session.whoami(request_options={"key": SESSION})["caller"]["kind"], "session")

    def test_name_the_version_of_the_api_and_the_program(self) -> None:
        seen = Failing()
        with client_with(seen, app_info="my-agent/1.2") as client:
            client.session.whoami()
        self.assertEqual(seen.seen[0]["svc-version"], API_VERSION)
        self.assertRegex(seen.seen[0]["user-agent"], r"^agent-identity-python/\S+ my-agent/1\.2$")
        with Client(api_version="2030-01-01") as client, self.assertRaisesRegex(sdk.InvalidRequestError, API_VERSION):
            client.session.whoami()

    def test_tell_of_every_attempt_and_log_it(self) -> None:
        seen: List[Attempt] = []
        own: List[Attempt] = []
        with client_with(Failing(busy, refused), on_attempt=seen.append) as client:
            with self.assertLogs("agent_identity", "DEBUG") as logged:
                client.session.whoami(request_options={"on_attempt": own.append})
        self.assertEqual(seen, own)
        self.assertEqual([one.number for one in seen], [1, 2, 3])
        self.assertEqual([one.response and one.response.status_code for one in seen], [503, None, 200])
        self.assertIsInstance(seen[1].error, httpx.ConnectError)
        self.assertRegex(seen[2].request_id or "", "^req_")
        self.assertRegex(logged.output[2], r"GET /api/auth/whoami: 200 in \d+ ms \(req_")
        self.assertNotIn(SESSION, "".join(logged.output))


class SignedDeliveries(unittest.TestCase):
    def test_of_a_test_verify_within_the_tolerance(self) -> None:
        self.assertEqual(verify_webhook(sign_webhook(BODY, SECRET), BODY, SECRET)["id"], "evt_1")
        old = sign_webhook(BODY, SECRET, id="evt_1", timestamp=int(time.time()) - 600)
        with self.assertRaises(sdk.InvalidSignature):
            verify_webhook(old, BODY, SECRET)
        self.assertEqual(verify_webhook(old, BODY, SECRET, tolerance_seconds=700)["type"], "email.received")


if __name__ == "__main__":
    unittest.main()


def snake(name: str) -> str:
    lower = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0], name).lower()
    return f"{lower}_" if keyword.iskeyword(lower) else lower


class EveryCall(unittest.TestCase):
    """Every call of the API, compared with the OpenAPI document."""

    def setUp(self) -> None:
        with open(os.environ["SVC_OPERATIONS"], encoding="utf-8") as file:
            self.operations: List[Dict[str, Any]] = json.load(file)
        self.sent: List[Dict[str, Any]] = []
        self.timeouts: List[Any] = []
        self.answers: List[Any] = []

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path, _, _ = request.url.raw_path.decode().partition("?")
        self.sent.append(
            {
                "method": request.method,
                "path": path,
                "query": dict(request.url.params),
                "body": json.loads(request.content) if request.content else None,
                "hasKey": "idempotency-key" in request.headers,
            }
        )
        self.timeouts.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json=self.answers.pop(0) if self.answers else {})

    def test_is_a_method_that_sends_its_members_to_their_places_and_waits_as_long_as_the_service(self) -> None:
        with client_with(httpx.MockTransport(self._answer)) as client:
            for operation in self.operations:
                if operation["isStream"]:
                    continue
                what = f"{operation['group']}.{operation['name']}"
                given = {snake(name): value for name, value in operation["input"].items()}
                getattr(getattr(client, operation["group"]), snake(operation["name"]))(**given)
                wanted = {name: operation[name] for name in ("method", "path", "query", "body", "hasKey")}
                self.assertEqual(self.sent.pop(), wanted, what)
                self.assertEqual(self.timeouts.pop(), 30 + operation["wait"], what)

    def test_of_an_identity_is_one_of_its_client_without_its_handle(self) -> None:
        with client_with(httpx.MockTransport(self._answer)) as client:
            for operation in self.operations:
                selected = operation["identity"]
                if selected != "handle" or operation["isStream"]:
                    continue
                rest = {snake(name): value for name, value in operation["input"].items() if name != selected}
                own = client.identity(operation["input"][selected])
                getattr(getattr(own, operation["group"]), snake(operation["name"]))(**rest)
                wanted = {name: operation[name] for name in ("method", "path", "query", "body", "hasKey")}
                self.assertEqual(self.sent.pop(), wanted, operation["name"])

    def test_reply_sends_all_that_it_takes(self) -> None:
        names = ("text", "html", "reply_all", "subject", "to", "cc", "bcc", "attachments", "headers")
        given: Dict[str, Any] = {name: name for name in names}
        with client_with(httpx.MockTransport(self._answer)) as client:
            client.identity("ada").reply("msg_1", **given)
        self.assertEqual(self.sent.pop()["body"], {"reply_to_message": "msg_1", **given})

    def test_that_lists_has_all_pages(self) -> None:
        with client_with(httpx.MockTransport(self._answer)) as client:
            for operation in self.operations:
                pages = operation["pages"]
                if pages is None:
                    continue
                name = snake(operation["name"])
                name = "iter" if name == "list" else f"iter_{pages['list'] if name == 'read' else name}"
                given = {snake(one): value for one, value in operation["input"].items() if one != "cursor"}
                self.answers = [
                    {pages["list"]: ["a", "b"], pages["cursor"]: "next"},
                    {pages["list"]: ["c"], pages["cursor"]: None},
                ]
                found = list(getattr(getattr(client, operation["group"]), name)(**given))
                self.assertEqual(found, ["a", "b", "c"], f"{operation['group']}.{name}")
                cursors = [request["query"].get("cursor") for request in self.sent]
                self.assertEqual(cursors, [None, "next"], f"{operation['group']}.{name}")
                self.sent.clear()
