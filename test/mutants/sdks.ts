/** Planted bugs in the SDKs. */
import type { Mutants } from "./Mutant.ts"

export const sdks: Mutants = {
  "tunnel-body-read-on": {
    file: "sdk/src/Tunnel.ts",
    from: "if (outgoing.destroyed) await reader?.cancel()",
    to: "",
    bug: "a handler behind a tunnel produces a body that nobody reads any more",
    tests: ["sdk/tunnel"],
  },
  "tunnel-loses-cookies": {
    file: "sdk/src/Tunnel.ts",
    from: 'if (cookies.length > 0) headers["set-cookie"] = cookies',
    to: "",
    bug: "a response with two cookies sets only one through a tunnel of the SDK",
    tests: ["sdk/tunnel"],
  },
  "sdk-old-delivery": {
    file: "sdk/src/Webhook.ts",
    from: "if (!(Math.abs(Date.now() / 1000 - Number(at)) <= toleranceSeconds)) {",
    to: "if (!Number.isFinite(Number(at))) {",
    bug: "the TypeScript SDK accepts a recorded delivery that is replayed later",
    tests: ["sdk/sdk"],
  },
  "python-repeats-without-key": {
    file: "sdk-python/src/agent_identity/_attempts.py",
    from: 'self._is_repeatable = request.takes_key or request.method == "GET"',
    to: "self._is_repeatable = True",
    bug: "the Python SDK repeats a call without a key whose outcome is unknown",
    tests: ["sdk/python"],
  },
  "python-new-key-per-attempt": {
    file: "sdk-python/src/agent_identity/_sync_transport.py",
    from: "            time.sleep(seconds)",
    to: "            time.sleep(seconds)\n            attempts = Attempts(self.settings, request, options or {})",
    bug: "each attempt of the Python SDK has its own Idempotency-Key, so an action can happen twice",
    tests: ["sdk/python"],
  },
  "python-stream-forgets-its-place": {
    file: "sdk-python/src/agent_identity/_sync_transport.py",
    from: "last = frame.id or last",
    to: "last = after",
    bug: "a stream of the Python SDK loses the Events that happen while it reconnects",
    tests: ["sdk/python"],
  },
  "python-body-without-deadline": {
    file: "sdk-python/src/agent_identity/_sync_transport.py",
    from: "if time.monotonic() > ends:",
    to: "if False:",
    bug: "a response that trickles in holds a call of the Python SDK without end",
    tests: ["sdk/python"],
  },
  "python-line-split-in-two": {
    file: "sdk-python/src/agent_identity/_frames.py",
    from: String.raw`|\r(?!\Z)")`,
    to: String.raw`|\r")`,
    bug: "a line end that arrives in two chunks ends an Event of the Python SDK early",
    tests: ["sdk/python"],
  },
  "sdk-logs-nothing": {
    file: "sdk/src/Transport.ts",
    from: "          tell(cause)\n",
    to: "",
    bug: "a log of attempts lacks those without a response, which are the ones to look for",
    tests: ["sdk/options"],
  },
  "sdk-key-of-client": {
    file: "sdk/src/Transport.ts",
    from: "options.key ?? key",
    to: "key ?? options.key",
    bug: "a call with the key of another account acts for the account of the client",
    tests: ["sdk/options"],
  },
  "python-redirect-unsigned": {
    file: "sdk-python/src/agent_identity/_async_client.py",
    from: 'request.headers.update(signed["headers"])',
    to: 'request.headers.setdefault("signature", signed["headers"].get("signature", ""))',
    bug: "the Python SDK sends the signature of the first address to the address of a redirect",
    tests: ["sdk/python"],
  },
  "python-old-delivery": {
    file: "sdk-python/src/agent_identity/_webhooks.py",
    from: " or abs(time.time() - int(at)) > tolerance_seconds",
    to: "",
    bug: "the Python SDK accepts a recorded delivery that is replayed later",
    tests: ["sdk/python"],
  },
}
