/** Events in the document: their union by `type`, and the Webhook deliveries, one entry per type. */
import { eventTypes, nameOf, unknownEvent } from "@svc/domain/events/Event"
import { deliveredTypes, WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { JsonSchema, Schema } from "effect"
import { exampleOf } from "./Examples.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- the document is JSON that the library's types describe only in part
type Json = Record<string, any>

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Standard Webhooks 1.0, section "Webhook headers". */
const signature = [
  ["webhook-id", "The Event's `evt_` id, the same in every attempt and replay. Process each id once.", "string"],
  ["webhook-timestamp", "The time of the signature in seconds since 1970. Reject old timestamps.", "integer"],
  [
    "webhook-signature",
    "`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`, with the decoded signing secret as key. Several signatures, separated by spaces, while two secrets are valid.",
    "string",
  ],
].map(([name, description, type]) => ({ name, in: "header", required: true, description, schema: { type } }))

const responses = {
  "2XX": {
    description: "Delivered. Respond within 15 seconds and process the Event afterwards. The response body is ignored.",
  },
  default: {
    description:
      "Failed delivery: any other status, including redirects, or no response in time. Retried after 30 s, 5 min, 30 min, 2 h, 6 h and 24 h.",
  },
}

/** Returns the schemas of payloads, generated as the library generates those of the API. */
const payloadSchemas = (): Json => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(WebhookPayload, { onExcessProperty: "error" })
  const made = JsonSchema.toMultiDocumentOpenApi3_1({ dialect: "draft-2020-12", schemas: [schema], definitions })
  // Removes the library's `Encoded` suffix.
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
        description:
          "The Event with the request id and time of this attempt. Verify the signature over these bytes first.",
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

/** Adds Events and Webhook deliveries to a completed document. */
export const addEvents = (document: Json): void => {
  const schemas: Json = document["components"].schemas
  Object.assign(schemas, payloadSchemas())
  // No schema refers to these schemas.
  delete schemas["WebhookPayload"]
  delete schemas[unknownEvent]
  schemas["Event"] = union(
    eventTypes,
    "Event",
    "An Event, distinguished by `type`. New types are added over time; ignore unknown ones.",
  )
  document["webhooks"] = Object.fromEntries(deliveredTypes.map((type) => [type, delivery(type, schemas)]))
}
