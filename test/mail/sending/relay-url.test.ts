/** The address of the operator's relay: port, TLS and login. */
import { parse } from "@svc/mail-gateway/mail/sending/RelayUrl"
import { Effect, Redacted } from "effect"
import { expect, it } from "vitest"

const parsed = (url: string) =>
  Effect.runSync(
    Effect.match(parse(Redacted.make(url)), {
      onFailure: ({ message }) => message,
      onSuccess: ({ host, port, tls, login }) => [host, port, tls, login?.user ?? null, login?.inTheClear ?? null],
    }),
  )

it.each([
  ["smtp://relay.example", ["relay.example", 587, "required", null, null]],
  ["smtps://relay.example", ["relay.example", 465, "immediate", null, null]],
  ["smtp://ada:s%40x@relay.example:2525", ["relay.example", 2525, "required", "ada", false]],
  ["smtp://relay.example?tls=optional", ["relay.example", 587, "optional", null, null]],
  ["smtp://ada:x@relay.example?tls=none", ["relay.example", 587, "none", "ada", true]],
  ["smtp://ada:x@localhost:1025", ["localhost", 1025, "optional", "ada", true]],
  ["smtp://[::1]?tls=required", ["::1", 587, "required", null, null]],
])("%s is %j", (url, relay) => expect(parsed(url)).toEqual(relay))

it.each(["relay.example", "http://relay.example", "smtp://relay.example?tls=maybe", "smtp://relay.example?starttls=1"])(
  "%s is refused with a reason",
  (url) => expect(parsed(url)).toMatch(/^SVC_SMTP_RELAY_URL (?:is not|has an)/),
)
