/** The doctor's report on the name server that DANE trusts. */
import { expect, layer } from "@effect/vitest"
import * as DaneResolver from "@svc/cli/doctor/DaneResolver"
import { Effect, Layer, Option } from "effect"
import { freePort } from "../harness/Ports.ts"
import { a, nameServer, type Names } from "../mail/sending/NameServer.ts"

const { signed, bogus } = DaneResolver.known
const good: Names = { [`A ${signed}`]: { data: [a("192.0.2.1")] }, [`A ${bogus}`]: { code: 2 } }

const settings = (port: number) => ({
  daneResolver: Option.some({ host: "127.0.0.1", port }),
  mailDirect: true,
  relay: Option.none(),
})
const judged = Effect.fnUntraced(function* (names: Names) {
  const { port } = yield* nameServer(names)
  const [finding] = yield* DaneResolver.findings(settings(port))
  return finding!
}, Effect.scoped)

layer(Layer.empty, { excludeTestServices: true })("the name server of SVC_DANE_RESOLVER", (it) => {
  it.effect("passes if it validates signed answers and rejects forged ones", () =>
    Effect.gen(function* () {
      expect(yield* judged(good)).toMatchObject({ group: "mail", status: "ok" })
      // If the deliberately broken domain no longer exists, the check cannot tell whether the resolver validates.
      expect((yield* judged({ ...good, [`A ${bogus}`]: { code: 3 } })).status).toBe("ok")
    }),
  )

  it.effect("fails with a message if it does not validate", () =>
    Effect.gen(function* () {
      const blind = yield* judged({ ...good, [`A ${signed}`]: { data: [a("192.0.2.1")], isSecure: false } })
      expect(blind).toMatchObject({ status: "fail", remedy: expect.stringContaining("SVC_DANE_RESOLVER") })
      expect(blind.detail).toContain("(AD)")
      for (const isSecure of [true, false]) {
        const credulous = yield* judged({ ...good, [`A ${bogus}`]: { data: [a("192.0.2.2")], isSecure } })
        expect(credulous).toMatchObject({ status: "fail", detail: expect.stringContaining(bogus) })
      }
    }),
  )

  it.effect("fails if it is unreachable or cannot resolve", () =>
    Effect.gen(function* () {
      expect(yield* judged({ ...good, [`A ${signed}`]: { code: 2 } })).toMatchObject({
        status: "fail",
        detail: expect.stringContaining("SERVFAIL"),
      })
      const [silent] = yield* DaneResolver.findings(settings(yield* Effect.promise(freePort)))
      expect(silent).toMatchObject({ status: "fail", remedy: expect.stringContaining("Start that name server") })
    }),
  )

  it.effect("is not checked without direct delivery, or if none is set", () =>
    Effect.gen(function* () {
      const [unused] = yield* DaneResolver.findings({ ...settings(1), mailDirect: false })
      const [relayed] = yield* DaneResolver.findings({ ...settings(1), relay: Option.some({} as never) })
      for (const one of [unused, relayed])
        expect(one).toMatchObject({ status: "warn", detail: expect.stringContaining("unused") })
      expect(yield* DaneResolver.findings({ ...settings(1), daneResolver: Option.none() })).toEqual([])
    }),
  )
})
