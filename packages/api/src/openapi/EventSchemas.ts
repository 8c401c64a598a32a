/** Events in the document: the union told apart by `type`, and what is delivered to Webhooks, one entry for each type. */
import { eventTypes, nameOf, unknownEvent } from "@svc/domain/events/Event"
import { deliveredTypes, WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { JsonSchema, Schema } from "effect"
import { exampleOf } from "./Examples.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- the document is JSON that the library's types describe only in part
type Json = Record<string, any>

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Standard Webhooks 1.0, section "Webhook headers". */
const signature = [
  ["webhook-id", "The Event's `evt_` id, the same in every attempt and replay: take an id once.", "string"],
  ["webhook-timestamp", "When this attempt was signed, in seconds since 1970. Refuse one that is old.", "integer"],
  [
    "webhook-signature",
    "`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`, keyed with the base64 part of the signing secret; several, separated by spaces, while two secrets are valid.",
    "string",
  ],
].map(([name, description, type]) => ({ name, in: "header", required: true, description, schema: { type } }))

const responses = {
  "2XX": { description: "Delivered. Answer within 15 seconds and work afterwards; the body is not needed." },
  default: {
    description:
      "Not delivered: any other status, a redirect too, or none in time. Tried again after 30 s, 5 min, 30 min, 2 h, 6 h and 24 h, then given up.",
  },
}

/** The schemas of the payloads, made as the library makes those of the API. */
const payloadSchemas = (): Json => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(WebhookPayload, { onExcessProperty: "error" })
  const made = JsonSchema.toMultiDocumentOpenApi3_1({ dialect: "draft-2020-12", schemas: [schema], definitions })
  // What is on the wire has no other name than what it means.
  return JSON.parse(JSON.stringify(made.definitions).replace(/(\w)Encoded"/g, '$1"'))
}

const union = (types: ReadonlyArray<string>, kind: "Event" | "Payload", description: string) => {
  const mapping = Object.fromEntries(types.map((type) => [type, ref(`${nameOf(type)}${kind}`).$ref]))
  return {
    description,
    oneOf: Object.values(mapping).map(($ref) => ({ $ref })),
    discriminator: { propertyName: "type", mapping },
  }
}

const delivery = (type: string, schemas: Json) => {
  const payload = ref(`${nameOf(type)}Payload`)
  const resolve = (path: string) => schemas[path.slice(ref("").$ref.length)]
  return {
    post: {
      operationId: `delivery.${type}`,
      tags: ["webhooks"],
      summary: type,
      description: schemas[`${nameOf(type)}Data`].description,
      security: [],
      parameters: signature,
      requestBody: {
        required: true,
        description: "The Event, under a fresh request id and time. Verify the signature over these bytes first.",
        content: {
          "application/json": {
            schema: payload,
            example: exampleOf(payload, resolve),
          },
        },
      },
      responses,
    },
  }
}

/** Puts both into a finished document. */
export const addEvents = (document: Json): void => {
  const schemas: Json = document["components"].schemas
  Object.assign(schemas, payloadSchemas())
  // Neither is referred to.
  delete schemas["WebhookPayload"]
  delete schemas[unknownEvent]
  schemas["Event"] = union(
    eventTypes,
    "Event",
    "What happened, told apart by `type`. Types are added over time: take no notice of those you do not know.",
  )
  document["webhooks"] = Object.fromEntries(deliveredTypes.map((type) => [type, delivery(type, schemas)]))
}
