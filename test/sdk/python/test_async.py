"""The asynchronous Python client against the service."""

from __future__ import annotations

import asyncio
import unittest
from contextlib import aclosing
from typing import Callable, List

import httpx

from harness import COMMAND, Site, application, busy, public, refused, server

from agent_identity import ApiConnectionError, ApiError, AsyncClient, async_login, types
from agent_identity._request import content_digest


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_calls_run_concurrently(self) -> None:
        async with AsyncClient() as client:
            ada, grace = await asyncio.gather(client.create_identity("as-ada"), client.create_identity("as-grace"))
            here = (await ada.identities.read())["email"]
            there = (await grace.identities.read())["email"]
            await asyncio.gather(ada.mail_settings.allow(address=there), grace.mail_settings.allow(address=here))
            question = await ada.send(to=[there], subject="Numbers", text="Shall we?")
            found: List[types.MessageSummary] = []
            while not found:
                found = [one async for one in grace.messages.iter(from_=here)]
                await asyncio.sleep(0.02)
            await grace.reply(found[0], text="Yes.")
            answer = await ada.wait_for_message(from_=there, after=question["id"])
            assert answer is not None
            self.assertEqual(answer["subject"], "Re: Numbers")

    async def test_fetch_signs_every_request_of_a_redirect(self) -> None:
        with server(Site) as site:
            Site.seen = []
            async with AsyncClient() as client:
                ada = await client.create_identity("as-fetch")
                response = await ada.fetch(f"{site}/moved", method="POST", content=b'{"n":1}')
            self.assertEqual((response.status_code, response.json()), (200, {"method": "POST", "body": '{"n":1}'}))
        paths, signatures, digests = zip(*Site.seen)
        self.assertEqual(paths, ("/moved", "/there"))
        self.assertEqual(len(set(signatures)), 2)
        self.assertEqual(digests, (content_digest(b'{"n":1}'),) * 2)

    async def test_tunnel_serves_an_application(self) -> None:
        async with AsyncClient() as client:
            ada = await client.create_identity("as-tunnel")
            async with await ada.tunnel(application, command=COMMAND) as tunnel:
                self.assertEqual(await asyncio.to_thread(public, tunnel.url, "/hello"), "GET /hello")

    async def test_lists_are_iterated_page_by_page(self) -> None:
        async with AsyncClient() as client:
            vault = (await client.create_identity("as-pages")).vault
            for n in range(3):
                await vault.put(f"secret.{n}", value="x")
            self.assertEqual(len([one async for one in vault.iter(limit=2)]), 3)

    async def test_stream_ends_with_its_block(self) -> None:
        async with AsyncClient() as client:
            ada = await client.create_identity("as-stream")

            async def rename() -> None:
                # The stream begins with the next Event, so a card is changed until one arrives.
                for n in range(1000):
                    await ada.cards.patch(name=f"Name {n}")
                    await asyncio.sleep(0.02)

            renaming = asyncio.create_task(rename())
            seen: List[str] = []
            async with aclosing(ada.stream()) as events:
                async for event in events:
                    seen.append(event["type"])
                    if len(seen) == 2:
                        break
            renaming.cancel()
            self.assertEqual(seen[-1], "card.updated")

    async def test_a_busy_service_is_asked_again(self) -> None:
        seen: List[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            return httpx.Response(503 if len(seen) == 1 else 200, headers={"retry-after": "0"}, json={})

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            async with AsyncClient("k", "http://svc.example", http_client=http) as client:
                await client.identity("ada").send(to=["grace@example.org"], text="Hello")
        self.assertEqual(len(seen), 2)
        self.assertEqual(seen[0].headers["idempotency-key"], seen[1].headers["idempotency-key"])

    async def test_login_ends_if_the_account_holder_denies_it(self) -> None:
        async with AsyncClient() as holder:
            denials: List["asyncio.Task[None]"] = []

            def deny(_: str, code: str) -> None:
                denials.append(asyncio.create_task(holder.device_confirmation.deny(code)))

            with self.assertRaises(ApiError) as raised:
                await async_login("as program", deny)
            self.assertEqual(raised.exception.code, "device_code_denied")
            await asyncio.gather(*denials)

    async def test_login_continues_while_the_service_is_unreachable_or_busy(self) -> None:
        end = "2100-01-01T00:00:00.000Z"
        answers: List[Callable[[httpx.Request], httpx.Response]] = []

        def answer(request: httpx.Request) -> httpx.Response:
            return answers.pop(0)(request)

        def started(_: httpx.Request) -> httpx.Response:
            place = {"verification_uri_complete": "https://a/b", "user_code": "BBBB-CCCC"}
            return httpx.Response(200, json={**place, "device_code": "d", "expires_at": end, "interval_seconds": 0})

        def granted(_: httpx.Request) -> httpx.Response:
            return httpx.Response(200, json={"key": "svc_admin_x"})

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            answers[:] = [started, refused, busy, granted]
            got = await async_login("p", lambda *_: None, base_url="http://svc.example", http_client=http)
            self.assertEqual(got["key"], "svc_admin_x")
            end = "2000-01-01T00:00:00.000Z"
            answers[:] = [started, refused]
            with self.assertRaises(ApiConnectionError):
                await async_login("p", lambda *_: None, base_url="http://svc.example", http_client=http)


if __name__ == "__main__":
    unittest.main()
