"""What users of other SDKs expect: classes of errors, options of a call, its attempts, versions, and webhooks of tests."""

from __future__ import annotations

import json
import pickle
import time
import unittest
from typing import List

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
