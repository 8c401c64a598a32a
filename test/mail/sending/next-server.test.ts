/** Direct delivery: when the next server is tried, which connections are used again, and when a domain is tried again. */
import { createHash, X509Certificate } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { Timing } from "@svc/mail-gateway/Timing"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { foundation } from "../../harness/Stores.ts"
import { a, mx as mxData, nameServer, type Names, tlsa } from "./NameServer.ts"
import { certificate, directTransport, type DirectTransportSettings, scripted, sink, transmission } from "./Sinks.ts"

const mx = (...servers: ReadonlyArray<readonly [string, number]>) =>
  servers.map(([exchange, priority]) => ({ exchange, priority }))
const sent = (to: DirectTransportSettings) =>
  Effect.flatMap(MailTransport, ({ send }) => send(transmission())).pipe(Effect.provide(directTransport(to)))
const two = {
  "MX example.org": mx(["one.example.org", 10], ["two.example.org", 20]),
  "A one.example.org": ["127.0.0.1"],
  "A two.example.org": ["127.0.0.1"],
}

layer(foundation)("The next server of a domain", (it) => {
  it.effect.each(["421 4.3.2 busy", "close"])("gets the message if the first one has not got it: %s", (first) =>
    Effect.gen(function* () {
      let sessions = 0
      const { port, heard } = yield* scripted((line) => {
        if (line === "") sessions++
        if (line === "") return "220 hi"
        return line.startsWith("MAIL") && sessions === 1 ? first : line === "DATA" ? "354 go" : "250 ok"
      })
      expect(yield* sent({ port, zone: two })).toMatchObject([{ state: "sent", reply: { host: "two.example.org" } }])
      expect([sessions, heard.filter((line) => line === ".").length]).toEqual([2, 1])
    }),
  )

  it.effect("does not hide why the first one did not take the message if the policy does not name it", () =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line) => (line === "" ? "421 4.3.2 busy" : "250 ok"))
      const zone = { ...two, "TXT _mta-sts.example.org": [["v=STSv1; id=1;"]] }
      const policies = { "example.org": "version: STSv1\r\nmode: enforce\r\nmx: one.example.org\r\nmax_age: 86400\r\n" }
      expect(yield* sent({ port, zone, policies })).toMatchObject([
        { state: "deferred", reply: { code: 421, host: "one.example.org" } },
      ])
    }),
  )

  it.effect("is not this service in any spelling, and a missing address is named as such", () =>
    Effect.gen(function* () {
      const own = { "MX example.org": mx(["mx.own.example", 10]), "A mx.own.example": ["127.0.0.1"] }
      expect(yield* sent({ port: 1, zone: own, ours: ["MX.Own.Example"] })).toMatchObject([
        { state: "refused", reply: { status: "5.4.6" } },
      ])
      const text = Effect.fnUntraced(function* (zone: DirectTransportSettings["zone"]) {
        const [outcome] = yield* sent({ port: 1, zone, allowPrivate: false })
        return outcome!.reply?.text
      })
      expect(yield* text(two)).toContain("no mail server with a public address")
      expect(yield* text({ "MX example.org": two["MX example.org"] })).toContain("no mail server with an address")
    }),
  )
})

layer(foundation)("A domain that was reached again", (it) => {
  it.effect("waits only as long as after a first failure", () =>
    Effect.gen(function* () {
      let isBusy = true
      const { port } = yield* scripted((line) => {
        if (line === "") return isBusy ? "421 busy" : "220 hi"
        // Idle connections are closed as well.
        return isBusy ? "close" : line === "DATA" ? "354 go" : "250 ok"
      })
      const zone = { "MX example.org": mx(["one.example.org", 10]), "A one.example.org": ["127.0.0.1"] }
      yield* Effect.gen(function* () {
        const { send } = yield* MailTransport
        const code = Effect.map(send(transmission()), ([outcome]) => outcome!.reply?.code ?? null)
        for (const _ of [1, 2]) {
          isBusy = true
          // The second attempt is not made.
          expect([yield* code, yield* code]).toEqual([421, null])
          isBusy = false
          yield* TestClock.adjust(Timing.backOffMillis)
          expect(yield* code).toBe(250)
        }
      }).pipe(Effect.provide(directTransport({ port, zone })))
    }),
  )
})

layer(foundation)("A connection to a server", (it) => {
  it.effect("is not used again after its TLSA records changed", () =>
    Effect.gen(function* () {
      const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest()
      const its = hash(new X509Certificate(certificate.cert).publicKey.export({ type: "spki", format: "der" }))
      const names: Record<string, Names[string]> = {
        "MX example.org": { data: [mxData(10, "mx.example.org")] },
        "A mx.example.org": { data: [a("127.0.0.1")] },
        "AAAA mx.example.org": {},
      }
      const { port: validating } = yield* nameServer(names)
      const { port, connections } = yield* sink()
      yield* Effect.gen(function* () {
        const { send } = yield* MailTransport
        const sendWith = Effect.fnUntraced(function* (key: Uint8Array | undefined) {
          // The resolver remembers its answers for a minute.
          yield* TestClock.adjust("1 minute")
          if (key !== undefined) names["TLSA _25._tcp.mx.example.org"] = { data: [tlsa(3, 1, 1, key)] }
          const [outcome] = yield* send(transmission())
          return [outcome!.state, connections()]
        })
        expect(yield* sendWith(undefined)).toEqual(["sent", 1])
        expect(yield* sendWith(its)).toEqual(["sent", 2])
        expect(yield* sendWith(hash(Buffer.from("another key")))).toEqual(["deferred", 3])
      }).pipe(Effect.provide(directTransport({ port, zone: {}, validating })))
    }),
  )
})
