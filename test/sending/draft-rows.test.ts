/** The store of drafts: its rows, lists and notifications, and that it returns no draft of another Identity. */
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { NewMail } from "@svc/domain/mail/Sending"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors } from "../harness/Actors.ts"
import { quietFeed } from "../harness/Stores.ts"
import { correspondent } from "./Correspondent.ts"

/** The Identities that were notified of a change. */
const announced: Array<unknown> = []
const feed = Layer.effect(
  ChangeFeed,
  Effect.map(ChangeFeed, (feed) => ({ ...feed, announce: (change: unknown) => void announced.push(change) })),
).pipe(Layer.provide(quietFeed))

layer(Layer.fresh(Drafts.layer).pipe(Layer.provide(feed), Layer.provideMerge(actors())))("a draft", (it) => {
  it.effect("is listed with a summary of its current version, and announced to mail clients at each change", () =>
    Effect.gen(function* () {
      const [ada, drafts] = [yield* correspondent("draftlist", []), yield* Drafts]
      const uuids = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
      const [first, second] = uuids.map((uuid) => toPublic("msg_", uuid))
      const mail: NewMail = { to: ["a@x.example"], cc: ["b@x.example"], bcc: ["c@x.example"], subject: "One" }
      announced.length = 0
      // The limit of the snippet is within the emoji, and PostgreSQL stores no half of a character.
      yield* drafts.create(ada.id, uuids[0]!, { ...mail, text: `  two\n words ${"x".repeat(189)}😀` })
      for (const uuid of uuids.slice(1)) yield* drafts.create(ada.id, uuid, { text: "" })
      const { entries, next_cursor } = yield* drafts.list(ada.id, { limit: 1 })
      expect(entries).toMatchObject([
        { ...mail, id: first, snippet: `two words ${"x".repeat(189)}\ufffd`, attachments: [] },
      ])
      const rest = yield* drafts.list(ada.id, { limit: 1, cursor: next_cursor! })
      expect(rest.entries).toMatchObject([{ id: second, to: [], cc: [], bcc: [], subject: "", snippet: "" }])
      yield* TestClock.adjust("1 minute")
      yield* drafts.replace(ada.id, first!, { subject: "Two" }, [1])
      const [changed] = (yield* drafts.list(ada.id, { limit: 1 })).entries
      expect(changed).toMatchObject({ subject: "Two", to: [] })
      expect(changed!.updated_at.getTime() - changed!.created_at.getTime()).toBe(60_000)
      expect(yield* drafts.read(ada.id, first!)).toMatchObject({ version: 2, draft: { id: first, subject: "Two" } })
      yield* drafts.remove(ada.id, second!, null)
      expect(announced).toEqual(Array(5).fill({ org: ada.org_id, identity: ada.id }))
    }),
  )

  it.effect("is neither read, listed, changed nor removed by another Identity", () =>
    Effect.gen(function* () {
      const [ada, grace, drafts] = [yield* correspondent("own", []), yield* correspondent("other", []), yield* Drafts]
      const uuid = yield* makeUuidV7
      const id = toPublic("msg_", uuid)
      yield* drafts.create(ada.id, uuid, { text: "Mine." })
      expect((yield* drafts.list(grace.id, { limit: 9 })).entries).toEqual([])
      for (const attempt of [
        drafts.read(grace.id, id),
        drafts.replace(grace.id, id, { text: "Theirs." }, null),
        drafts.remove(grace.id, id, null),
        drafts.read(ada.id, "msg_unknown"),
      ]) {
        expect(yield* Effect.flip(attempt as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      }
      const conditional = Effect.flip(drafts.remove(grace.id, id, [1]))
      expect(yield* conditional).toMatchObject({ code: "precondition_failed" })
      expect((yield* drafts.read(ada.id, id)).draft.text).toBe("Mine.")
    }),
  )

  it.effect("is not created for an Identity that is being deleted", () =>
    Effect.gen(function* () {
      const [ada, drafts] = [yield* correspondent("going", []), yield* Drafts]
      yield* (yield* Writes)`update identity set status = 'deleting' where id = ${ada.id}`
      expect(yield* Effect.flip(drafts.create(ada.id, yield* makeUuidV7, {}))).toMatchObject({
        code: "identity_not_ready",
      })
      expect((yield* drafts.list(ada.id, { limit: 1 })).entries).toEqual([])
    }),
  )
})
