/** Completes operations of the document: headers of requests and responses, and descriptions of parameters. */
import { Schema, SchemaAST } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import type { Json } from "./Shapes.ts"

const header = (text: string, schema: Json = { type: "string" }) => ({ description: text, schema })
export const headers = {
  "request-id": header("The id of this request, assigned by the service."),
  "retry-after": header("The seconds to wait before a retry.", { type: "integer" }),
  "ratelimit-policy": header("The limits of this call (draft-ietf-httpapi-ratelimit-headers)."),
  ratelimit: header("The remaining quota of each limit, and the time of its reset."),
  etag: header("The entity tag of the representation."),
}
const componentHeader = (name: string) => ({ $ref: `#/components/headers/${name}` })

export const completeResponses = (operation: Json, limited: boolean, tagged: boolean) => {
  for (const [status, response] of Object.entries<Json>(operation["responses"])) {
    response["headers"] = { ...response["headers"], "request-id": componentHeader("request-id") }
    if (status === "429" || status === "503") response["headers"]["retry-after"] = componentHeader("retry-after")
    if (limited && status !== "401") {
      response["headers"]["ratelimit-policy"] = componentHeader("ratelimit-policy")
      response["headers"]["ratelimit"] = componentHeader("ratelimit")
    }
    if (status.startsWith("2") && response["description"] === "Success") {
      response["description"] =
        status === "204" ? "Done" : status === "202" ? "Accepted" : status === "201" ? "Created" : "Done"
    }
    if (tagged && status === "200") response["headers"]["etag"] = componentHeader("etag")
  }
  // The library does not describe that a download has the media type of the file, and that a range is a response of its own.
  if (operation["responses"]["416"] !== undefined) {
    const whole: Json = operation["responses"]["200"]
    whole["content"] = { "*/*": whole["content"]["application/octet-stream"] }
    operation["responses"]["206"] = {
      description: "The requested range",
      headers: { ...whole["headers"], "content-range": header("The range, and the size of the whole.") },
      content: whole["content"],
    }
  }
  if (tagged) {
    operation["responses"]["304"] = {
      description: "Not modified: the client already has this representation",
      headers: { etag: componentHeader("etag"), "request-id": componentHeader("request-id") },
    }
  }
}

/**
 * Returns the descriptions of an endpoint's parameters. They are annotated on the decoded side, which the encoded schema
 * may not show.
 */
const descriptions = ({ params, headers, query }: HttpApiEndpoint.Top): ReadonlyMap<string, string> =>
  new Map(
    [params, headers, query].flatMap((schema) => {
      const ast = schema === undefined ? undefined : SchemaAST.toType(schema.ast)
      if (ast === undefined || !SchemaAST.isObjects(ast)) return []
      return ast.propertySignatures.flatMap(({ name, type }): ReadonlyArray<[string, string]> => {
        const description = SchemaAST.resolveDescription(type)
        return description === undefined ? [] : [[String(name), description]]
      })
    }),
  )

/**
 * Returns the schemas of numeric parameters. They are text on the wire, but clients write numbers, so the document shows
 * the decoded schema with its bounds and default.
 */
const numbers = ({ params, query }: HttpApiEndpoint.Top): ReadonlyMap<string, Json> =>
  new Map(
    [params, query].flatMap((schema) => {
      const ast = schema === undefined ? undefined : SchemaAST.toType(schema.ast)
      if (ast === undefined || !SchemaAST.isObjects(ast)) return []
      return ast.propertySignatures.flatMap(({ name, type }): ReadonlyArray<[string, Json]> => {
        const made = Schema.toJsonSchemaDocument(Schema.make(type)).schema as Json
        return made["type"] === "integer" || made["type"] === "number" ? [[String(name), made]] : []
      })
    }),
  )

/** Marks an optional body as not required; the library describes it as a nullable body. */
export const completeBody = (operation: Json, endpoint: HttpApiEndpoint.Top) => {
  const body: Json | undefined = operation["requestBody"]
  const schemas = [...endpoint.payload.values()].flatMap(({ schemas: of }) => [...of])
  if (body === undefined || !schemas.some(({ ast }) => SchemaAST.isUndefined(ast))) return
  body["required"] = false
  for (const media of Object.values<Json>(body["content"])) {
    const choices: ReadonlyArray<Json> = media["schema"]["anyOf"]
    const left = choices.filter(({ type }) => type !== "null")
    media["schema"] = left.length === 1 ? left[0] : { anyOf: left }
  }
}

/** `repeatable` operations accept an `Idempotency-Key`. */
export const completeParameters = (
  operation: Json,
  endpoint: HttpApiEndpoint.Top,
  repeatable: boolean,
  tagged: boolean,
) => {
  const texts = descriptions(endpoint)
  const counted = numbers(endpoint)
  for (const parameter of operation["parameters"]) {
    parameter["schema"] = counted.get(parameter["name"]) ?? parameter["schema"]
    const text = texts.get(parameter["name"])
    if (text !== undefined) parameter["description"] = text
    delete parameter["schema"]["description"]
  }
  const add = (name: string, text: string, schema: Json) => {
    if (!operation["parameters"].some((one: Json) => one["name"].toLowerCase() === name.toLowerCase()))
      operation["parameters"].push({ name, in: "header", required: false, description: text, schema })
  }
  if (repeatable) {
    add("Idempotency-Key", "Makes the request safe to repeat (draft-ietf-httpapi-idempotency-key-header).", {
      type: "string",
      minLength: 1,
      maxLength: 255,
    })
  }
  if (tagged) add("If-None-Match", "Entity tags of representations that the client has.", { type: "string" })
}
