/** The addresses to which bounces of a message are sent. */
import { it as effect } from "@effect/vitest"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { localPart, read as readAddress } from "@svc/mail-gateway/mail/sending/BounceAddress"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { sealingLayer } from "../../harness/Stores.ts"

const outboxId = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99"

describe("A bounce address", () => {
  effect.effect("is decoded to its row in any letter case, and fits into a local part", () =>
    Effect.gen(function* () {
      const sealing = yield* Sealing
      const local = localPart(sealing, outboxId)
      expect(local.length).toBeLessThanOrEqual(64)
      expect(readAddress(sealing, local)).toBe(outboxId)
      expect(readAddress(sealing, local.toUpperCase())).toBe(outboxId)
    }).pipe(Effect.provide(sealingLayer)),
  )

  effect.effect("that is forged or modified is rejected", () =>
    Effect.gen(function* () {
      const sealing = yield* Sealing
      const local = localPart(sealing, outboxId)
      for (let at = 7; at < local.length; at++) {
        const other = local[at] === "a" ? "b" : "a"
        expect(readAddress(sealing, local.slice(0, at) + other + local.slice(at + 1)), String(at)).toBeUndefined()
      }
      for (const text of [
        "bounce",
        "bounce+",
        "bounce+a",
        `${local}a`,
        local.slice(0, -1),
        local.replace("bounce", "ada"),
      ]) {
        expect(readAddress(sealing, text)).toBeUndefined()
      }
    }).pipe(Effect.provide(sealingLayer)),
  )
})
