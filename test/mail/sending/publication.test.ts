/** New DKIM keys sign once DNS has the records of all of them. */
import { DkimKeys, type ListedKey } from "@svc/cluster/mail/dkim/DkimKeys"
import * as DkimPublication from "@svc/mail-gateway/mail/sending/DkimPublication"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Timing } from "@svc/mail-gateway/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { dnsLayer } from "./Sinks.ts"

const key = (selector: string, state: string, record = `v=DKIM1; k=rsa; p=${selector}KEY`) =>
  ({ selector, state, generation: 7, name: `${selector}._domainkey.mail.example`, record }) as unknown as ListedKey

describe("A DKIM key", () => {
  it.effect.each([
    ["in one string", [["v=DKIM1; k=rsa; p=oneKEY"]], true],
    ["in several strings", [["v=DKIM1; k=r", "sa; p=one", "KEY"]], true],
    ["with other white space", [["v=DKIM1;p = one KEY ;k=rsa"]], true],
    ["beside another record", [["x=y"], ["p=oneKEY"]], true],
    ["with another value", [["v=DKIM1; k=rsa; p=twoKEY"]], false],
    ["that is longer", [["v=DKIM1; k=rsa; p=oneKEYs"]], false],
    ["that was revoked", [["v=DKIM1; k=rsa; p="]], false],
    ["in a tag that only ends in p", [["v=DKIM1; xp=oneKEY"]], false],
    ["without a record", "ENODATA", false],
  ] as const)("%s is published or not", ([, records, expected]) =>
    Effect.gen(function* () {
      const resolver = yield* Resolver
      expect(yield* DkimPublication.isPublished(resolver, key("one", "waiting"))).toBe(expected)
    }).pipe(Effect.provide(dnsLayer({ "TXT one._domainkey.mail.example": records }))),
  )

  it.effect("that waits begins with its generation when all of them are published, and not before", () => {
    const done: Array<string> = []
    let listed: ReadonlyArray<ListedKey> = []
    let isBroken = false
    const zone: Record<string, ReadonlyArray<unknown>> = { "TXT one._domainkey.mail.example": [["p=oneKEY"]] }
    const keys = Layer.mock(DkimKeys, {
      ensure: (domain: string) =>
        isBroken ? Effect.die("broken") : Effect.sync(() => void done.push(`ensure ${domain}`)),
      list: () => Effect.sync(() => listed),
      begin: (domain: string, generation: number) => Effect.sync(() => void done.push(`begin ${domain} ${generation}`)),
    } as never)
    const publication = DkimPublication.layer({ mailDomain: "mail.example" }).pipe(
      Layer.provide([keys, dnsLayer(zone), Logger.layer([])]),
    )
    /** Lets one interval pass and returns what was done in it. */
    const next = Effect.gen(function* () {
      done.length = 0
      yield* TestClock.adjust(Timing.dkimLook)
      yield* Effect.yieldNow
      return [...done]
    })
    return Effect.gen(function* () {
      yield* Layer.build(publication)
      yield* TestClock.adjust(0)
      expect(done).toEqual(["ensure mail.example"])
      listed = [key("one", "active"), key("two", "retired")]
      expect(yield* next).toEqual(["ensure mail.example"])
      // The records of keys that do not wait do not matter.
      listed = [key("zero", "active"), key("one", "waiting"), key("two", "waiting")]
      expect(yield* next).toEqual(["ensure mail.example"])
      isBroken = true
      expect(yield* next).toEqual([])
      // A failure does not end the checks.
      isBroken = false
      zone["TXT two._domainkey.mail.example"] = [["p=twoKEY"]]
      expect(yield* next).toEqual(["ensure mail.example", "begin mail.example 7"])
    })
  })
})
