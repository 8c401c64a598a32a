/** What is left over of work that was cut short is removed in time, and nothing else. */
import { makeUuidV7 } from "@svc/domain/Ids"
import * as Housekeeping from "@svc/cluster/housekeeping/Housekeeping"
import { storeAhead } from "@svc/cluster/mail/MessageContent"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { passing } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"

const content = { raw: new Uint8Array([1]), text: null, html: null, headers: [], search_text: "" }
const hours = (n: number) => new Date(Date.now() - n * 3_600_000)
const stored = Effect.flatMap(Reads, (sql) => sql<{ message_id: string }>`select message_id from message_content`)

layer(databaseLayer)("a large body that was stored ahead of its message", (it) => {
  it.effect("goes after a day where its message never came", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [old, fresh] = [yield* makeUuidV7, yield* makeUuidV7]
      yield* storeAhead(sql, old, content, hours(25))
      yield* storeAhead(sql, fresh, content, hours(23))
      yield* Layer.build(Housekeeping.layer.pipe(Layer.provide(TestRunner.layer)))
      const { value } = yield* passing(stored, (rows) => rows.length < 2)
      expect(value).toEqual([{ message_id: fresh }])
    }),
  )
})
