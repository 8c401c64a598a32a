/** Drafts under several hands at once. */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { actors } from "../harness/Actors.ts"
import { correspondent } from "./Letters.ts"

layer(actors())("a draft", (it) => {
  it.effect("is changed by one of those who have read the same version, and the others are told", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftone", [])
      const drafts = yield* Drafts
      const uuid = yield* makeUuidV7
      const id = toPublic("msg_", uuid)
      yield* drafts.create(ada.id, uuid, { text: "First." })
      const answers = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, n) => `Hand ${n}.`),
        (text) => Effect.result(drafts.replace(ada.id, id, { text }, [1])),
        { concurrency: "unbounded" },
      )
      expect(answers.filter(Result.isSuccess).length).toBe(1)
      const refused = answers.filter(Result.isFailure).map(({ failure }) => failure)
      expect(refused.map((error) => "code" in error && error.code)).toEqual(Array(7).fill("precondition_failed"))
      const gone = yield* Effect.flip(drafts.remove(ada.id, id, [1]))
      expect(gone).toMatchObject({ code: "precondition_failed" })
    }),
  )
})
