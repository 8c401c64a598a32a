/** What holds for every operation of the document: headers of requests and answers, descriptions of parameters. */
import { Schema, SchemaAST } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import type { Json } from "./Json.ts"

const header = (text: string, schema: Json = { type: "string" }) => ({ description: text, schema })
export const headers = {
  "request-id": header("The id of this request, ours."),
  "retry-after": header("Seconds to wait.", { type: "integer" }),
  "ratelimit-policy": header("The limits that hold for this call (draft-ietf-httpapi-ratelimit-headers)."),
  ratelimit: header("What is left of each limit, and when it is renewed."),
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
  if (tagged) {
    operation["responses"]["304"] = {
      description: "Not modified: the client has this representation",
      headers: { etag: componentHeader("etag"), "request-id": componentHeader("request-id") },
    }
  }
}

/** What the endpoint's definition says of its parameters: on the decoded side, which the encoded one need not show. */
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
 * Numbers of a path or a query are text on the wire, yet a client writes numbers: the decoded side with its bounds and
 * its default is what the document shows.
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

/** A body that may be left out: the library shows none as `null`. */
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

/** `repeatable`: takes an `Idempotency-Key`. */
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
    add("Idempotency-Key", "Makes a repeat of this request safe (draft-ietf-httpapi-idempotency-key-header).", {
      type: "string",
      minLength: 1,
      maxLength: 255,
    })
  }
  if (tagged) add("If-None-Match", "Entity tags the client has.", { type: "string" })
}
