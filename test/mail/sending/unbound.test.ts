/** DANE and `svc doctor` with a real validating name server: Unbound, with zones signed by the tests. */
import { createHash, X509Certificate } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import * as DaneResolver from "@svc/cli/doctor/DaneResolver"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import * as ValidatingResolver from "@svc/mail-gateway/mail/sending/dane/ValidatingResolver"
import { Effect, Option } from "effect"
import { foundation } from "../../harness/Stores.ts"
import { sink, directTransport, untrustedCertificate, transmission } from "./Sinks.ts"
import { unbound, type Zone } from "./Unbound.ts"
import { has } from "../../harness/Programs.ts"

const its = createHash("sha256")
  .update(new X509Certificate(untrustedCertificate.cert).publicKey.export({ type: "spki", format: "der" }))
  .digest("hex")
const anothers = "00".repeat(32)

const mail = (tlsa: string) => ["@ MX 10 mx", "mx A 127.0.0.1", `_25._tcp.mx TLSA 3 1 1 ${tlsa}`]
const zones: ReadonlyArray<Zone> = [
  { name: "good.example", records: mail(its) },
  { name: "other.example", records: mail(anothers) },
  // An attacker inserts a certificate of their own.
  { name: "forged.example", records: mail(anothers), altered: (signed) => signed.replaceAll(anothers, its) },
  {
    name: "moved.example",
    records: ["host A 192.0.2.1"],
    altered: (signed) => signed.replaceAll("192.0.2.1", "192.0.2.2"),
  },
  { name: "unsigned.example", records: mail(anothers), isUnsigned: true },
]

layer(foundation)("A validating name server", (it) => {
  it.effect.skipIf(!has("unbound", "ldns"))(
    "marks authentic answers, and withholds those with invalid signatures",
    () =>
      Effect.gen(function* () {
        const { port } = yield* unbound(zones)
        const ask = yield* ValidatingResolver.make({ host: "127.0.0.1", port })
        const good = yield* ask("_25._tcp.mx.good.example", "TLSA")
        expect(good).toMatchObject({ isSecure: true, exists: true })
        expect(good.values).toEqual([{ usage: 3, selector: 1, matching: 1, data: Buffer.from(its, "hex") }])
        expect(yield* ask("mx.good.example", "AAAA")).toMatchObject({ isSecure: true, exists: true, values: [] })
        expect(yield* ask("nobody.good.example", "A")).toMatchObject({ isSecure: true, exists: false })
        expect(yield* ask("mx.unsigned.example", "A")).toMatchObject({ isSecure: false, values: ["127.0.0.1"] })
        expect(yield* Effect.flip(ask("_25._tcp.mx.forged.example", "TLSA"))).toMatchObject({ code: "ESERVFAIL" })
      }),
  )

  it.effect.skipIf(!has("unbound", "ldns"))("decides which certificates are required", () =>
    Effect.gen(function* () {
      const { port: validating } = yield* unbound(zones)
      const { port, taken } = yield* sink(untrustedCertificate)
      const { send } = yield* Effect.provide(MailTransport, directTransport({ port, zone: {}, validating }))
      const stateOf = Effect.fnUntraced(function* (domain: string) {
        const [outcome] = yield* send(transmission({ domain, recipients: [`grace@${domain}`] }))
        return outcome!.state
      })
      expect(yield* stateOf("good.example")).toBe("sent")
      expect(yield* stateOf("other.example")).toBe("deferred")
      expect(yield* stateOf("forged.example")).toBe("deferred")
      expect(taken).toHaveLength(1)
      expect(yield* stateOf("unsigned.example")).toBe("sent")
      expect(taken).toHaveLength(2)
    }),
  )

  it.effect.skipIf(!has("unbound", "ldns"))("passes the checks of the doctor", () =>
    Effect.gen(function* () {
      const { port } = yield* unbound(zones)
      const settings = {
        daneResolver: Option.some({ host: "127.0.0.1", port }),
        mailDirect: true,
        relay: Option.none(),
      }
      const judged = (signed: string, bogus: string) =>
        Effect.map(DaneResolver.findings(settings, { signed, bogus }), ([one]) => one!.status)
      expect(yield* judged("mx.good.example", "host.moved.example")).toBe("ok")
      expect(yield* judged("mx.unsigned.example", "host.moved.example")).toBe("fail")
    }),
  )
})
