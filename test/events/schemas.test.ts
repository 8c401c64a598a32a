/** The data of each Event type: every type has a schema, and the examples in the API description conform to it. */
import { document } from "@svc/api/openapi/Document"
import { Event, eventData, EventType, identityEventTypes, nameOf, orgEventTypes } from "@svc/domain/events/Event"
import { deliveredTypes, WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { exampleOf } from "@svc/api/openapi/Examples"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Schema } from "effect"

const strict = { onExcessProperty: "error" } as const
const types = [...identityEventTypes, ...orgEventTypes]
const schemas = document["components"].schemas
const example = (schema: object) =>
  exampleOf(schema, (ref: string) => schemas[ref.replace("#/components/schemas/", "")])

/** Returns an Event as the store returns it. */
const stored = (type: string, data: unknown) => ({
  id: "evt_01kjr8xr3v7k2t9m4q6w8y0zab",
  type,
  created_at: new Date("2026-11-20T12:00:00Z"),
  identity_id: null,
  handle: null,
  data,
})

/** Returns the Event as the API encodes it, and the number of log lines that encoding it wrote. */
const shown = (event: unknown) => {
  let logged = 0
  const logger = Logger.make(() => void logged++)
  return Schema.encodeUnknownEffect(
    Schema.Array(Event),
    strict,
  )([event]).pipe(
    Effect.map(([one]) => ({ event: one, logged })),
    Effect.provide(Logger.layer([logger])),
  )
}

describe("the types of Events", () => {
  it("have one schema each, and each is in the document", () => {
    assert.deepStrictEqual(Object.keys(eventData), types)
    assert.deepStrictEqual(EventType.literals, types)
    assert.strictEqual(new Set(types).size, types.length)
    assert.deepStrictEqual(Object.keys(schemas.Event.discriminator.mapping), types)
    assert.deepStrictEqual(Object.keys(document["webhooks"]), [...deliveredTypes])
    assert.isUndefined(schemas.UnknownEvent)
    for (const type of types) {
      assert.isString(schemas[`${nameOf(type)}Data`].description, type)
      assert.strictEqual(
        schemas[`${nameOf(type)}Event`].properties.data.$ref,
        `#/components/schemas/${nameOf(type)}Data`,
      )
    }
  })

  it.effect("have examples that match their schemas", () =>
    Effect.gen(function* () {
      for (const type of types) {
        const event: any = example({ $ref: `#/components/schemas/${nameOf(type)}Event` })
        const { event: repeated, logged } = yield* shown({ ...event, created_at: new Date(event.created_at) })
        assert.deepStrictEqual(repeated, event)
        assert.strictEqual(logged, 0, type)
        yield* Schema.decodeUnknownEffect(eventData[type] as Schema.Codec<unknown>)(event.data, strict)
      }
      for (const type of deliveredTypes) {
        const media = document["webhooks"][type].post.requestBody.content["application/json"]
        assert.strictEqual((yield* Schema.decodeUnknownEffect(WebhookPayload)(media.example, strict)).type, type)
      }
    }),
  )

  it.effect("cause no warning if they are known", () =>
    Effect.gen(function* () {
      const { event, logged } = yield* shown(stored("account.deletion_started", {}))
      assert.strictEqual(event?.created_at, "2026-11-20T12:00:00.000Z")
      assert.strictEqual(logged, 0)
    }),
  )

  it.effect("stored by another version are shown unchanged, with a warning in the log", () =>
    Effect.gen(function* () {
      for (const [type, data] of [
        ["api_key.revoked", { key_id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10" }],
        ["account.deletion_started", { by: "a newer version" }],
        ["connector.recovered", { platform: "bluesky" }],
      ] as const) {
        const { event, logged } = yield* shown(stored(type, data))
        assert.deepStrictEqual(event as unknown, { ...stored(type, data), created_at: "2026-11-20T12:00:00.000Z" })
        assert.strictEqual(logged, 1)
      }
    }),
  )
})
