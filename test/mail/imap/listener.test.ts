/** The IMAP listener: limits per client, PROXY headers, deadlines and how sessions end. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Identities } from "@svc/cluster/actor/Identities"
import { Health } from "@svc/cluster/health/Health"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Unavailable } from "@svc/domain/problems/Problem"
import { ComposingThread } from "@svc/mail-gateway/mail/composing/ComposingThread"
import * as Imap from "@svc/mail-gateway/mail/Imap"
import { LoginRefused, Logins } from "@svc/mail-gateway/mail/imap/server/Logins"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Timing } from "@svc/mail-gateway/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, vi } from "vitest"
import ipaddr from "ipaddr.js"
import { holdTimers } from "../../harness/HeldTimers.ts"
import { converse } from "../../harness/Mail.ts"
import { patience } from "../../harness/Eventually.ts"
import { quietFeed } from "../../harness/Stores.ts"

const nobody = { inAll: 100, perClient: 2, perMailbox: 1 }
const balancers = [ipaddr.parseCIDR("127.0.0.1/32")]

/** The sessions of these tests read nothing. */
const emptyDatabase = () => Effect.succeed([])

let timers: ReturnType<typeof holdTimers>
beforeEach(() => {
  timers = holdTimers("packages/", 1_000)
})
afterEach(() => timers.restore())

type Answer = "opened" | "refused" | "unavailable" | "defect"

/** A listener whose password decides how a login ends, with the addresses and credentials that it received. */
const listener = (proxies: typeof balancers = []) =>
  Effect.gen(function* () {
    const addresses: Array<string> = []
    const revocations: Array<() => void> = []
    const logins = Layer.mock(Logins, {
      judge: (user, password, address) => {
        addresses.push(address)
        switch (Redacted.value(password) as Answer) {
          case "refused":
            return Effect.fail(new LoginRefused())
          case "unavailable":
            return Effect.fail(new Unavailable({ detail: "down", retry_after_seconds: 1 }))
          case "defect":
            return Effect.die("planned")
          case "opened":
            return Effect.succeed({
              identityId: user as never,
              orgId: "o",
              canonical: user!,
              handle: user!,
              by: { kind: "identity_key", credentialId: null, requestId: null } as const,
              whenRevoked: (end) => Effect.sync(() => void revocations.push(end)),
            })
        }
      },
    })
    const parts = Layer.mergeAll(
      logins,
      quietFeed,
      Health.layer,
      Layer.mock(Identities, { of: () => ({ HideDrafts: () => Effect.void }) as never }),
      Layer.mock(Drafts, {}),
      Layer.mock(ComposingThread, {}),
      Layer.mock(Resolver, {}),
      Layer.succeed(Reads, emptyDatabase as never),
      Layer.succeed(Writes, emptyDatabase as never),
    )
    const health = yield* Layer.build(
      Imap.layer({
        host: "127.0.0.1",
        port: 0,
        tlsPort: 0,
        mailDomain: "mail.localhost",
        messageBytes: 1_000,
        mailboxBytes: 10_000,
        sessions: nobody,
        allowsPlain: true,
        proxies,
        tls: undefined,
      }).pipe(Layer.provideMerge(parts)),
    )
    const { components } = yield* Effect.provide(
      Effect.flatMap(Health, ({ report }) => report),
      health,
    )
    const [port, tlsPort] = components[0]!.detail!.match(/\d+/g)!.map(Number) as [number, number]
    return { port, tlsPort, addresses, revocations }
  })

/** A client that records everything it receives until the connection is closed. */
const clientOf = (socket: Socket) => {
  let received = ""
  socket
    .setEncoding("latin1")
    .on("data", (text) => (received += text))
    .on("error", () => {})
  const all = () => {
    const text = received
    received = ""
    return text
  }
  return {
    send: (text: string) => socket.write(text),
    close: () => socket.destroy(),
    /** Returns what was received up to `pattern`. */
    until: (pattern: RegExp) =>
      Effect.promise(() => vi.waitUntil(() => pattern.test(received), patience)).pipe(Effect.map(all)),
    /** Returns what was received until the server ended the connection. */
    rest: Effect.promise(() => vi.waitUntil(() => socket.readableEnded || socket.destroyed, patience)).pipe(
      Effect.map(all),
    ),
    received: () => received,
  }
}

const opened = (port: number, first = "") =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect({ port, host: "127.0.0.1" })
      if (first !== "") socket.write(first)
      return clientOf(socket)
    }),
    (client) => Effect.sync(client.close),
  )

/** Sends a command and returns the responses to it. */
const say = Effect.fnUntraced(function* (client: ReturnType<typeof clientOf>, command: string) {
  client.send(`a ${command}\r\n`)
  return yield* client.until(/^(?:a |\+ ).*\r\n$/m)
})

const logIn = Effect.fnUntraced(function* (client: ReturnType<typeof clientOf>, user: string) {
  expect(yield* say(client, `LOGIN ${user} opened`)).toMatch(/^a OK \[CAPABILITY .*\] Logged in\.\r\n$/)
})

const greeted = Effect.fnUntraced(function* (port: number, first = "") {
  const client = yield* opened(port, first)
  expect(yield* client.until(/\r\n$/)).toMatch(/^\* OK \[CAPABILITY IMAP4rev1 .*\] at your service\r\n$/)
  return client
})

describe("An IMAP client", () => {
  it.effect("is rejected above the sessions of its address, and admitted again after one has ended", () =>
    Effect.gen(function* () {
      const { port, tlsPort } = yield* listener()
      const first = yield* greeted(port)
      yield* greeted(port)
      for (let n = 0; n < 2; n++) {
        expect(yield* (yield* opened(port)).rest).toBe("* BYE Too many sessions from your address.\r\n")
      }
      // Text before a handshake would be no TLS.
      const bytes = yield* opened(tlsPort)
      expect(yield* bytes.rest).toBe("")
      expect(yield* say(first, "LOGOUT")).toBe("* BYE Logging out\r\na OK LOGOUT completed.\r\n")
      yield* first.rest
      // The server counts the session until it has closed its own end.
      const next = Effect.flatMap(opened(port), (client) => client.until(/\r\n$/))
      expect(yield* Effect.repeat(next, { until: (text) => text.startsWith("* OK"), times: 500 })).toContain("* OK")
      expect(yield* (yield* opened(port)).rest).toContain("* BYE Too many")
    }),
  )

  it.effect("that starts with TLS is greeted within it and may log in", () =>
    Effect.gen(function* () {
      const { tlsPort } = yield* listener()
      const client = clientOf(connectTls({ port: tlsPort, host: "127.0.0.1", rejectUnauthorized: false }))
      expect(yield* client.until(/\r\n$/)).toMatch(/^\* OK \[CAPABILITY (?!.*STARTTLS)/)
      expect(yield* say(client, "LOGIN ada opened")).toMatch(/^a OK /)
      client.close()
    }),
  )

  it.effect("that starts TLS later is not offered it again", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const socket = connect({ port, host: "127.0.0.1" })
      const plain = clientOf(socket)
      expect(yield* plain.until(/\r\n$/)).toContain(" STARTTLS ")
      expect(yield* say(plain, "STARTTLS")).toBe("a OK Begin TLS negotiation now.\r\n")
      socket.removeAllListeners("data")
      const client = clientOf(connectTls({ socket, rejectUnauthorized: false }))
      expect(yield* say(client, "CAPABILITY")).not.toContain("STARTTLS")
      expect(yield* say(client, "STARTTLS")).toBe("a BAD TLS is active.\r\n")
      client.close()
    }),
  )

  it.effect("counts as the address in the header of a load balancer", () =>
    Effect.gen(function* () {
      const { port, addresses } = yield* listener(balancers)
      const header = (address: string) => `PROXY TCP4 ${address} 127.0.0.1 4000 143\r\n`
      const one = yield* greeted(port, `${header("203.0.113.7")}`)
      yield* logIn(one, "ada")
      yield* greeted(port, header("203.0.113.7"))
      expect(yield* (yield* opened(port, header("203.0.113.7"))).rest).toContain("* BYE Too many sessions")
      const other = yield* greeted(port, header("203.0.113.8"))
      yield* logIn(other, "grace")
      const own = yield* greeted(port, "PROXY UNKNOWN\r\n")
      yield* logIn(own, "alan")
      expect(addresses).toEqual(["203.0.113.7", "203.0.113.8", "127.0.0.1"])
    }),
  )

  it.effect("is disconnected if its balancer sends no header, or it sends one itself", () =>
    Effect.gen(function* () {
      const { port } = yield* listener(balancers)
      expect(yield* (yield* opened(port, "a NOOP\r\n")).rest).toBe("")
      const silent = yield* opened(port)
      yield* Effect.promise(() => vi.waitUntil(() => timers.running().includes(Timing.smtpProxyHeaderMillis), patience))
      timers.fire(Timing.smtpProxyHeaderMillis)
      expect(yield* silent.rest).toBe("")
      const direct = yield* listener()
      const client = yield* greeted(direct.port)
      client.send("PROXY TCP4 203.0.113.7 127.0.0.1 4000 143\r\n")
      expect(yield* client.until(/\r\n$/)).toMatch(/^PROXY BAD /)
    }),
  )
})

describe("An IMAP login", () => {
  it.effect("reports a failure, and the fifth refusal ends the session", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const client = yield* greeted(port)
      const refusal = "a NO [AUTHENTICATIONFAILED] User and password do not belong together.\r\n"
      for (let n = 1; n <= 4; n++) expect(yield* say(client, "LOGIN ada refused")).toBe(refusal)
      // Failures of the service do not count.
      expect(yield* say(client, "LOGIN ada unavailable")).toBe(
        "a NO [UNAVAILABLE] The service did not answer in time.\r\n",
      )
      expect(yield* say(client, "LOGIN ada defect")).toBe("a NO [UNAVAILABLE] Internal error.\r\n")
      client.send("a LOGIN ada refused\r\n")
      expect(yield* client.rest).toBe(`${refusal}* BYE Too many failed logins.\r\n`)
    }),
  )

  it.effect("is denied above the sessions of its Mailbox until one of them has ended", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const one = yield* greeted(port)
      yield* logIn(one, "ada")
      const denied = "a NO [LIMIT] This Mailbox has too many sessions.\r\n"
      // A denied session that ends makes no room, and denials are no failed logins.
      for (const denials of [6, 1]) {
        const other = yield* Effect.repeat(opened(port), {
          until: (client) => Effect.map(client.until(/\r\n$/), (text) => text.startsWith("* OK")),
        })
        for (let n = 0; n < denials; n++) expect(yield* say(other, "LOGIN ada opened")).toBe(denied)
        yield* say(other, "LOGOUT")
        yield* other.rest
      }
      yield* say(one, "LOGOUT")
      yield* one.rest
      const last = yield* greeted(port)
      yield* Effect.repeat(say(last, "LOGIN ada opened"), { until: (text) => text.startsWith("a OK") })
    }),
  )

  it.effect("ends with its credential, whatever the client is doing", () =>
    Effect.gen(function* () {
      const { port, revocations } = yield* listener()
      for (const command of ["NOOP", "IDLE"]) {
        const client = yield* greeted(port)
        yield* logIn(client, "ada")
        yield* say(client, command)
        const end = revocations.pop()!
        end()
        end()
        expect(yield* client.rest).toBe("* BYE The credential of this session has ended.\r\n")
      }
    }),
  )
})

describe("A silent IMAP session", () => {
  const isOpen = (client: ReturnType<typeof clientOf>) =>
    Effect.map(say(client, "NOOP"), (text) => text.startsWith("a OK "))

  it.effect("that has not logged in is ended after a minute, whatever it sends", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const client = yield* greeted(port)
      const loggedIn = yield* greeted(port)
      yield* logIn(loggedIn, "ada")
      yield* TestClock.adjust(Timing.imapLoginMillis / 2)
      expect(yield* isOpen(client)).toBe(true)
      yield* TestClock.adjust(Timing.imapLoginMillis / 2)
      expect(yield* isOpen(client)).toBe(true)
      yield* TestClock.adjust(Timing.imapLookMillis)
      expect(yield* client.rest).toBe("* BYE You did not log in.\r\n")
      expect(yield* isOpen(loggedIn)).toBe(true)
    }),
  )

  it.effect("that has logged in is ended after 31 minutes", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const client = yield* greeted(port)
      yield* logIn(client, "ada")
      yield* TestClock.adjust(Timing.imapIdleMillis)
      // Its input starts the time anew.
      expect(yield* isOpen(client)).toBe(true)
      yield* TestClock.adjust(Timing.imapIdleMillis)
      expect(client.received()).toBe("")
      yield* TestClock.adjust(Timing.imapLookMillis)
      expect(yield* client.rest).toBe("* BYE You were silent for too long.\r\n")
    }),
  )

  it.effect("gets a keep-alive every few minutes while it waits for changes", () =>
    Effect.gen(function* () {
      const { port } = yield* listener()
      const client = yield* greeted(port)
      yield* logIn(client, "ada")
      expect(yield* say(client, "IDLE")).toBe("+ idling\r\n")
      for (let n = 0; n < 3; n++) {
        yield* TestClock.adjust(Timing.imapStirMillis)
        yield* Effect.promise(() => new Promise(setImmediate))
        expect(client.received()).toBe("")
        yield* TestClock.adjust(Timing.imapLookMillis)
        expect(yield* client.until(/\r\n$/)).toBe("* OK Still here\r\n")
      }
      client.send("DONE\r\n")
      expect(yield* client.until(/\r\n$/)).toBe("a OK IDLE completed.\r\n")
    }),
  )
})

it.effect("An IMAP session receives BYE when the service stops", () =>
  Effect.gen(function* () {
    const { client, port } = yield* Effect.scoped(
      Effect.gen(function* () {
        const { port } = yield* listener()
        const client = clientOf(connect({ port, host: "127.0.0.1" }))
        yield* client.until(/\r\n$/)
        return { client, port }
      }),
    )
    expect(yield* client.rest).toBe("* BYE The service is restarting.\r\n")
    yield* Effect.promise(() => expect(converse(port, [])).rejects.toThrow("ECONNREFUSED"))
  }),
)
