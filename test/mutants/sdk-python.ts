/** Planted bugs in the Python SDK. */
import type { Mutants } from "./Mutant.ts"

export const sdkPython: Mutants = {
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
  "python-old-delivery": {
    file: "sdk-python/src/agent_identity/_webhooks.py",
    from: " or abs(time.time() - int(at)) > _TOLERANCE",
    to: "",
    bug: "the Python SDK accepts a recorded delivery that is replayed later",
    tests: ["sdk/python"],
  },
}
