"""What the blocking client does as the agent: signed web requests and tunnels."""

from __future__ import annotations

import socket
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from harness import COMMAND, Site, application, public, server

from agent_identity import AgentIdentityError, ApiError, Client
from agent_identity._request import content_digest


class Plain(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"local " + self.path.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class Fetch(unittest.TestCase):
    def test_signs_and_returns_a_redirect_that_is_not_followed(self) -> None:
        Site.seen = []
        with server(Site) as site, Client() as client:
            ada = client.create_identity("py-fetch")
            response = ada.fetch(f"{site}/moved", method="POST", content=b"x", follow_redirects=False)
            self.assertEqual((response.status_code, response.headers["location"]), (307, "/there"))
        [(path, signature, digest)] = Site.seen
        self.assertEqual((path, digest), ("/moved", content_digest(b"x")))
        self.assertRegex(signature, "^sig")

    def test_does_not_follow_for_ever(self) -> None:
        class Endless(Site):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("location", "/again")
                self.end_headers()

        with server(Endless) as site, Client() as client:
            ada = client.create_identity("py-endless")
            with self.assertRaises(httpx.TooManyRedirects):
                ada.fetch(f"{site}/again")

    def test_fails_for_a_key_that_may_not_sign(self) -> None:
        with Client() as client:
            client.create_identity("py-narrow")
            made = client.api_keys.create_for_identity("py-narrow", name="narrow", scopes=["mail:read"])
        with Client(made["key"]) as narrow, self.assertRaises(ApiError) as raised:
            narrow.identity("py-narrow").fetch("https://example.org/")
        self.assertEqual(raised.exception.code, "scope_missing")


class Tunnels(unittest.TestCase):
    def test_connect_a_local_port_until_they_are_closed(self) -> None:
        with Client() as client, ThreadingHTTPServer(("127.0.0.1", 0), Plain) as local:
            threading.Thread(target=local.serve_forever, args=(0.02,), daemon=True).start()
            ada = client.create_identity("py-tunnel")
            with ada.tunnel(local.server_port, command=COMMAND) as tunnel:
                self.assertEqual(public(tunnel.url, "/page"), "local /page")
            self.assertNotEqual(public(tunnel.url, "/page"), "local /page")
            local.shutdown()

    def test_close_the_server_of_their_application(self) -> None:
        with Client() as client:
            ada = client.create_identity("py-wsgi")
            with ada.tunnel(application, command=COMMAND) as tunnel:
                self.assertEqual(public(tunnel.url, "/app"), "GET /app")
                assert tunnel._server is not None
                port = tunnel._server.server_port
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=5).close()

    def test_raise_the_error_of_the_command(self) -> None:
        with Client("svc_id_wrong") as client:
            with self.assertRaisesRegex(AgentIdentityError, "credential"):
                client.identity("nobody").tunnel(1, command=COMMAND)
            with self.assertRaisesRegex(AgentIdentityError, "Node.js"):
                client.identity("nobody").tunnel(1, command=["no-such-program"])
            with self.assertRaisesRegex(AgentIdentityError, "code 3"):
                client.identity("nobody").tunnel(1, command=[sys.executable, "-c", "raise SystemExit(3)"])


if __name__ == "__main__":
    unittest.main()
