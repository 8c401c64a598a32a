/** Direct delivery to the servers of a domain: which ones are tried, in what order, over which TLS, and which never. */
import { expect, layer } from "@effect/vitest"
import { MailTransport, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { foundation } from "../../harness/Stores.ts"
import {
  reply,
  scripted,
  sink,
  type DirectTransportSettings,
  directTransport,
  untrustedCertificate,
  transmission,
  type Zone,
} from "./Sinks.ts"

const mx = (...servers: ReadonlyArray<readonly [string, number]>) =>
  servers.map(([exchange, priority]) => ({ exchange, priority }))

const sent = (to: DirectTransportSettings, more: Partial<Transmission> = {}) =>
  Effect.flatMap(MailTransport, ({ send }) => send(transmission(more))).pipe(Effect.provide(directTransport(to)))

/** Several servers share a port, each on its own address. */
const here = { "A mx.example.org": ["127.0.0.1"] }
const simple = { "MX example.org": mx(["mx.example.org", 10]), ...here }

layer(foundation)("Direct delivery", (it) => {
  it.effect("uses whatever TLS the server offers", () =>
    Effect.gen(function* () {
      for (const [options, secure] of [
        [{}, true],
        [untrustedCertificate, true],
        [{ maxVersion: "TLSv1.2" }, true],
        [{ disabledCommands: ["STARTTLS"] }, false],
      ] as const) {
        const { port, taken } = yield* sink({
          ...options,
          disabledCommands: "disabledCommands" in options ? [...options.disabledCommands] : [],
        })
        expect(yield* sent({ port, zone: simple })).toMatchObject([
          { state: "sent", reply: { host: "mx.example.org" } },
        ])
        expect(taken.map((one) => one.secure)).toEqual([secure])
      }
    }),
  )

  it.effect("falls back to clear text if the server's TLS is broken", () =>
    Effect.gen(function* () {
      const { port, heard } = yield* scripted((line, socket) => {
        if (line === "") return "220 hi"
        if (line.startsWith("EHLO")) return "250-x\r\n250 STARTTLS"
        if (line === "STARTTLS") {
          socket.write("220 go\r\n", () => socket.destroy())
          return null
        }
        return line === "DATA" ? "354 go" : line === "." || /^[A-Z]{4}/.test(line) ? "250 ok" : null
      })
      expect(yield* sent({ port, zone: simple })).toMatchObject([{ state: "sent" }])
      expect(heard.filter((line) => line === "STARTTLS")).toHaveLength(1)
    }),
  )

  it.effect("tries the servers in order, and the next one if one does not respond or is busy", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink({}, "127.0.0.3")
      const zone = {
        "MX example.org": mx(["third.example.org", 30], ["first.example.org", 10], ["second.example.org", 20]),
        // The first has no listener, and the second no address.
        "A first.example.org": ["127.0.0.9"],
        "A second.example.org": "ETIMEOUT",
        "A third.example.org": ["127.0.0.3"],
      }
      expect(yield* sent({ port, zone })).toMatchObject([{ state: "sent", reply: { host: "third.example.org" } }])
      expect(taken).toHaveLength(1)
    }),
  )

  it.effect("does not retry after a permanent rejection or a timeout after DATA", () =>
    Effect.gen(function* () {
      for (const end of ["550 5.7.1 no", "451 4.3.0 later", "close"]) {
        const first = yield* scripted((line) =>
          line === ""
            ? "220 hi"
            : line === "DATA"
              ? "354 go"
              : line === "."
                ? end
                : /^[A-Z]{4}/.test(line)
                  ? "250 ok"
                  : null,
        )
        const zone = {
          "MX example.org": mx(["one.example.org", 10], ["two.example.org", 20]),
          "A one.example.org": ["127.0.0.1"],
          "A two.example.org": ["127.0.0.1"],
        }
        const [outcome] = yield* sent({ port: first.port, zone })
        expect(outcome!.state).toBe(end.startsWith("550") ? "refused" : "deferred")
        expect(first.heard.filter((line) => line === "DATA")).toHaveLength(1)
      }
    }),
  )

  it.effect("uses the domain itself if it has no MX records", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      expect(
        yield* sent({ port, zone: { "MX example.org": "ENODATA", "A example.org": ["127.0.0.1"] } }),
      ).toMatchObject([{ state: "sent", reply: { host: "example.org" } }])
      expect(taken).toHaveLength(1)
    }),
  )

  it.effect("ignores a null MX beside other MX records, which RFC 7505 forbids", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      const zone = { "MX example.org": mx(["", 0], ["mx.example.org", 10]), ...here }
      expect(yield* sent({ port, zone })).toMatchObject([{ state: "sent", reply: { host: "mx.example.org" } }])
      expect(taken).toHaveLength(1)
    }),
  )

  it.effect.each([
    ["takes no mail (RFC 7505)", { "MX example.org": mx(["", 0]) }, "refused", "5.1.10"],
    ["does not exist", {}, "refused", "5.1.2"],
    [
      "has no server with an address",
      { "MX example.org": mx(["mx.example.org", 10]), "A mx.example.org": [] },
      "refused",
      "5.4.4",
    ],
    [
      "leads back to us",
      { "MX example.org": mx(["mx.mail.example", 10], ["mx.example.org", 20]), ...here },
      "refused",
      "5.4.6",
    ],
    ["has a DNS that does not answer", { "MX example.org": "ESERVFAIL" }, "deferred", "4.4.3"],
  ] as const)("to a domain that %s ends with the matching status", ([, zone, state, status]) =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      expect(yield* sent({ port, zone })).toMatchObject([{ state, reply: { code: null, status } }])
      expect(taken).toEqual([])
    }),
  )

  it.effect("never connects to private, loopback or reserved addresses, including embedded ones", () =>
    Effect.gen(function* () {
      const { port, taken, connections } = yield* sink()
      for (const address of [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.51.100.7",
        "0.0.0.0",
      ]) {
        const zone = { "MX example.org": mx(["mx.example.org", 10]), "A mx.example.org": [address] }
        expect(yield* sent({ port, zone, allowPrivate: false })).toMatchObject([
          { state: "refused", reply: { status: "5.4.4" } },
        ])
      }
      for (const address of ["::1", "::ffff:127.0.0.1", "fd00::1", "fe80::1", "2002:7f00:1::", "64:ff9b::7f00:1"]) {
        const zone = { "MX example.org": mx(["mx.example.org", 10]), "AAAA mx.example.org": [address] }
        expect(yield* sent({ port, zone, allowPrivate: false })).toMatchObject([{ state: "refused" }])
      }
      expect([taken.length, connections()]).toEqual([0, 0])
    }),
  )

  it.effect("tries at most eight addresses", () =>
    Effect.gen(function* () {
      let connections = 0
      const { port } = yield* scripted((line) => {
        if (line === "") connections++
        return line === "" ? "421 busy" : "close"
      })
      const addresses = Array.from({ length: 5 }, () => "127.0.0.1")
      const zone = {
        "MX example.org": mx(["one.example.org", 10], ["two.example.org", 20], ["three.example.org", 30]),
        "A one.example.org": addresses,
        "A two.example.org": addresses,
        "A three.example.org": addresses,
      }
      expect(yield* sent({ port, zone })).toMatchObject([{ state: "deferred", reply: { code: 421 } }])
      expect(connections).toBe(8)
    }),
  )

  it.effect("backs off from a domain after none of its servers could be reached", () =>
    Effect.gen(function* () {
      let connections = 0
      const { port } = yield* scripted((line) => {
        if (line === "") connections++
        return line === "" ? "421 busy" : "close"
      })
      yield* Effect.gen(function* () {
        const { send } = yield* MailTransport
        expect(yield* send(transmission())).toMatchObject([{ state: "deferred", reply: { code: 421 } }])
        expect(yield* send(transmission())).toMatchObject([{ state: "deferred", reply: { code: null } }])
      }).pipe(Effect.provide(directTransport({ port, zone: simple })))
      expect(connections).toBe(1)
    }),
  )

  it.effect("limits the concurrent deliveries to one domain", () =>
    Effect.gen(function* () {
      let most = 0
      let open = 0
      const { port, taken } = yield* sink({
        onMailFrom: (_, __, done) => {
          open++
          most = Math.max(most, open)
          setTimeout(() => {
            open--
            done()
          }, 20)
        },
      })
      yield* Effect.gen(function* () {
        const { send } = yield* MailTransport
        yield* Effect.forEach(Array.from({ length: 30 }), () => send(transmission()), { concurrency: "unbounded" })
      }).pipe(Effect.provide(directTransport({ port, zone: simple })))
      expect(taken).toHaveLength(30)
      expect(most).toBeLessThanOrEqual(5)
    }),
  )
})

const policy = (mode: string, server: string) =>
  `version: STSv1\r\nmode: ${mode}\r\nmx: ${server}\r\nmax_age: 86400\r\n`
const announced = { ...simple, "TXT _mta-sts.example.org": [["v=STSv1; id=1;"]] }

layer(foundation)("A domain with an MTA-STS policy", (it) => {
  it.effect("gets mail only over verified TLS to the servers that the policy lists", () =>
    Effect.gen(function* () {
      const policies = { "example.org": policy("enforce", "*.example.org") }
      const good = yield* sink()
      expect(yield* sent({ port: good.port, zone: announced, policies })).toMatchObject([{ state: "sent" }])
      expect(good.taken.map(({ secure }) => secure)).toEqual([true])
      const stripped = yield* sink({ disabledCommands: ["STARTTLS"] })
      const other = yield* sink(untrustedCertificate)
      for (const { port, taken } of [stripped, other]) {
        expect(yield* sent({ port, zone: announced, policies })).toMatchObject([{ state: "deferred" }])
        expect(taken).toEqual([])
      }
      const elsewhere = { "example.org": policy("enforce", "mx.elsewhere.example") }
      const [outcome] = yield* sent({ port: good.port, zone: announced, policies: elsewhere })
      expect(outcome).toMatchObject({ state: "deferred", reply: { status: "4.7.1" } })
      expect(good.taken).toHaveLength(1)
    }),
  )

  it.effect("is subject to the policy for max_age seconds after it can no longer be fetched", () =>
    Effect.gen(function* () {
      const policies: Record<string, string> = { "example.org": policy("enforce", "*.example.org") }
      const { port, taken } = yield* sink()
      const zone: Record<string, Zone[string]> = { ...announced, "A mx.attacker.example": ["127.0.0.1"] }
      yield* Effect.gen(function* () {
        const { send } = yield* MailTransport
        expect(yield* send(transmission())).toMatchObject([{ state: "sent" }])
        // An attacker removes the policy and adds a server of their own.
        delete policies["example.org"]
        zone["TXT _mta-sts.example.org"] = [["v=STSv1; id=2;"]]
        zone["MX example.org"] = mx(["mx.attacker.example", 10])
        // A failed fetch does not forget the policy either.
        for (const wait of ["43200 seconds", "43199 seconds"] as const) {
          yield* TestClock.adjust(wait)
          expect(yield* send(transmission())).toMatchObject([{ state: "deferred", reply: { status: "4.7.1" } }])
        }
        yield* TestClock.adjust("1 hour")
        expect(yield* send(transmission())).toMatchObject([{ state: "sent" }])
      }).pipe(Effect.provide(directTransport({ port, zone, policies })))
      expect(taken).toHaveLength(2)
    }),
  )

  it.effect("in testing mode, or with an unavailable policy, gets mail like any other", () =>
    Effect.gen(function* () {
      for (const policies of [{ "example.org": policy("testing", "mx.elsewhere.example") }, {}]) {
        const { port, taken } = yield* sink({ disabledCommands: ["STARTTLS"] })
        expect(yield* sent({ port, zone: announced, policies })).toMatchObject([{ state: "sent" }])
        expect(taken).toHaveLength(1)
      }
    }),
  )
})

layer(foundation)("A server that rejects one of several recipients", (it) => {
  it.effect("determines the outcome of each recipient", () =>
    Effect.gen(function* () {
      const { port } = yield* sink({
        onRcptTo: ({ address }, _, done) => (address.startsWith("gone") ? done(reply(550, "5.1.1 gone")) : done()),
      })
      const outcomes = yield* sent({ port, zone: simple }, { recipients: ["gone@example.org", "grace@example.org"] })
      expect(outcomes.map(({ state }) => state)).toEqual(["refused", "sent"])
    }),
  )

  it.effect("is not followed by the next server if one recipient has the message already", () =>
    Effect.gen(function* () {
      const { port, heard } = yield* scripted((line) =>
        line === "" ? "220 hi" : line === "DATA" ? "354 go" : line.startsWith("RCPT TO:<late") ? "421 later" : "250 ok",
      )
      const zone = {
        "MX example.org": mx(["one.example.org", 10], ["two.example.org", 20]),
        "A one.example.org": ["127.0.0.1"],
        "A two.example.org": ["127.0.0.1"],
      }
      const outcomes = yield* sent({ port, zone }, { recipients: ["late@example.org", "grace@example.org"] })
      expect(outcomes.map(({ state }) => state)).toEqual(["deferred", "sent"])
      expect(heard.filter((line) => line === ".")).toHaveLength(1)
    }),
  )
})
