/** The addresses to which bounces of a message are sent. */
import { it as effect } from "@effect/vitest"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { localPart, read as readAddress } from "@svc/mail-gateway/mail/sending/BounceAddress"
import { Effect, Layer } from "effect"
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

  effect.effect("from before a rotation of the master key is accepted as long as the former key is known", () =>
    Effect.gen(function* () {
      const [former, next] = [7, 8].map((byte) => Buffer.alloc(32, byte).toString("base64"))
      const sealingOf = (text: string) =>
        Effect.provide(Sealing, Layer.unwrap(Effect.map(parseMasterKeys(text), Sealing.layer)))
      const local = localPart(yield* sealingOf(`a:${former}`), outboxId)
      expect(readAddress(yield* sealingOf(`b:${next},a:${former}`), local)).toBe(outboxId)
      expect(readAddress(yield* sealingOf(`b:${next}`), local)).toBeUndefined()
    }),
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
