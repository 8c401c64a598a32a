import { createConfig, lintFromString } from "@redocly/openapi-core"
import { Validator } from "@seriousme/openapi-schema-validator"
import spectralCore from "@stoplight/spectral-core"
import spectralRulesets from "@stoplight/spectral-rulesets"
import { document } from "@svc/api/openapi/Document"

import { Api } from "@svc/domain/Api"
import { describe, expect, it } from "vitest"
import { contractOf } from "./Contract.ts"

const operations = Object.values<any>(document["paths"]).flatMap((path) => Object.values<any>(path))

describe("OpenAPI document", () => {
  // After an intended change, `vitest run test/api/openapi --update=all` writes the file anew.
  it("promises exactly the operations, members and types of `contract.txt`", async () => {
    await expect(contractOf(document)).toMatchFileSnapshot("contract.txt")
  })

  it("has an entity tag and 304 for every read of a single resource", () => {
    // These return a download, or show a secret or the caller.
    const other = /\/(?:raw|archive|text|request|wait|identity-key|client-metadata\.json)$|\{index\}$/
    const single = Object.entries<any>(document["paths"]).filter(
      ([path, { get }]) =>
        get !== undefined && /\}(?:\/(?:card|tunnel|mail|proof|value))?$/.test(path) && !other.test(path),
    )
    const answering = new Set(["/api/handles/{handle}"])
    for (const [path, { get }] of single) {
      if (answering.has(path)) continue
      expect(Object.keys(get.responses), path).toContain("304")
      expect(get.responses["200"].headers, path).toHaveProperty("etag")
      expect(
        get.parameters.map(({ name }: { name: string }) => name),
        path,
      ).toContain("If-None-Match")
    }
    expect(single.length).toBeGreaterThan(18)
  })

  it("takes the media type of merge patches at every PATCH of one resource", () => {
    for (const [path, { patch }] of Object.entries<any>(document["paths"])) {
      // This endpoint marks the messages that its body names.
      if (patch === undefined || path === "/api/identities/{handle}/messages") continue
      expect(Object.keys(patch.requestBody.content), path).toEqual(["application/json", "application/merge-patch+json"])
    }
  })

  it("passes Redocly, Spectral and the schema validator without warnings", async () => {
    const source = JSON.stringify(document)
    const redocly = await lintFromString({
      source,
      absoluteRef: "openapi.json",
      config: await createConfig({ extends: ["recommended"] }),
    })
    expect(redocly.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset({
      extends: [[spectralRulesets.oas, "all"]],
      rules: {
        // Tags are ordered by their use, not alphabetically.
        "openapi-tags-alphabetical": "off",
        // Redocly has already validated the examples of all 1,100 bodies, in a quarter of the time.
        "oas3-valid-media-example": "off",
      },
    } as never)
    const remarks = await spectral.run(JSON.parse(source))
    expect(remarks.map(({ code, message, path }) => `${code}: ${message} at ${path.join("/")}`)).toEqual([])
    expect(await new Validator().validate(JSON.parse(source))).toMatchObject({ valid: true })
    expect(document["openapi"]).toBe("3.1.1")
    expect(document["info"].version).toBe("0.1.0")
  })

  it("has every endpoint once, with a summary, its problems and an example", () => {
    const endpoints = Object.entries(Api.groups).flatMap(([group, { endpoints: of }]) =>
      Object.keys(of).map((name) => `${group}.${name}`),
    )
    expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(endpoints.toSorted())
    const tags: ReadonlyArray<any> = document["tags"]
    expect(tags.map(({ name }) => name)).toHaveLength(Object.keys(Api.groups).length)
    expect(new Set(tags.map(({ name }) => name))).toEqual(new Set(Object.keys(Api.groups)))
    expect(tags.slice(0, 3).map(({ name }) => name)).toEqual(["sign_in", "session", "api_keys"])
    expect(document["info"].description).toContain("## Getting started")
    for (const { name, description } of tags) expect(description, name).toBeTypeOf("string")
    for (const { operationId, summary, parameters, responses, requestBody } of operations) {
      expect(summary, operationId).toBeTypeOf("string")
      for (const { name, description } of parameters) {
        expect(description, `${operationId} ${name}`).toBeTypeOf("string")
      }
      const answers = Object.values<any>(responses).flatMap(({ content }) => Object.entries<any>(content ?? {}))
      for (const [type, media] of [...answers, ...Object.entries<any>(requestBody?.content ?? {})]) {
        if (type.endsWith("json")) expect(media.example ?? media.examples, `${operationId} ${type}`).toBeDefined()
      }
      expect(responses["500"], operationId).toBeDefined()
    }
  })

  it("has the responses to repeats at every operation that takes a key, and those to ranges and to unknown parameters", () => {
    for (const { operationId, parameters, responses } of operations) {
      if (!parameters.some(({ name }: any) => name === "Idempotency-Key")) continue
      for (const [status, code] of [
        ["409", "idempotency_key_in_progress"],
        ["422", "idempotency_key_reused"],
      ] as const)
        expect(responses[status]?.content["application/problem+json"].examples, operationId).toHaveProperty(code)
    }
    for (const path of ["/api/account", "/api/overview", "/api/auth/whoami", "/api/auth/session"])
      expect(document["paths"][path].get.responses["400"], path).toBeDefined()
    const { responses } = document["paths"]["/api/identities/{handle}/messages/{id}/attachments/{index}"].get
    expect(Object.keys(responses["200"].content)).toEqual(["*/*"])
    expect(responses["206"]).toMatchObject({ content: responses["200"].content, headers: { "content-range": {} } })
  })

  it("shows query numbers as numbers with their bounds and defaults", () => {
    const parameters = operations.flatMap((operation) => operation.parameters)
    const counted = ["limit", "offset", "wait", "version", "index"]
    for (const { name, schema } of parameters.filter((one) => counted.includes(one.name))) {
      expect(schema, name).toMatchObject({ type: "integer", minimum: expect.any(Number), maximum: expect.any(Number) })
    }
    const list = document["paths"]["/api/events"].get.parameters.find(({ name }: any) => name === "limit")
    expect(list.schema).toEqual({ type: "integer", minimum: 1, maximum: 200, default: 50 })
  })

  it("closes requests, opens responses, and describes every member", () => {
    const schemas: Record<string, any> = document["components"].schemas
    const undescribed: Array<string> = []
    const each = (
      node: any,
      path: string,
      visit: (node: any, path: string) => void,
      seen = new Set<string>(),
    ): void => {
      if (typeof node !== "object" || node === null) return
      const ref = typeof node.$ref === "string" ? node.$ref.split("/").at(-1) : undefined
      if (ref !== undefined && !seen.has(ref)) each(schemas[ref], ref, visit, seen.add(ref))
      visit(node, path)
      for (const [key, value] of Object.entries(node)) {
        if (key !== "example" && key !== "examples") each(value, `${path}/${key}`, visit, seen)
      }
    }
    for (const { operationId, requestBody, responses } of operations) {
      each(requestBody?.content ?? {}, operationId, (node, path) => {
        if (node.type === "object" && node.properties !== undefined) expect(node.additionalProperties, path).toBe(false)
      })
      each(responses, operationId, (node, path) => expect(node.additionalProperties, path).not.toBe(false))
      each([requestBody, responses], operationId, (node, path) => {
        for (const [member, schema] of Object.entries<any>(node.properties ?? {})) {
          if (typeof schema?.description !== "string" && schema?.type !== undefined)
            undescribed.push(`${path}.${member}`)
        }
      })
    }
    expect(undescribed).toEqual([])
    expect(JSON.stringify(document)).not.toMatch(/prefixItems|x-effect/)
    // A description of its own takes precedence over the one of its name.
    expect(schemas["Overview"].properties.events.description).toMatch(/^The latest \d+ Events/)
  })

  it("requires the members that every problem has, and no optional body", () => {
    expect(document["components"].schemas.NotFound.required.toSorted()).toEqual([
      "agent_hint",
      "code",
      "detail",
      "doc_url",
      "instance",
      "status",
      "title",
      "type",
    ])
    for (const path of ["/api/account/deletion", "/api/exports"]) {
      expect(document["paths"][path].post.requestBody.required).toBe(false)
    }
    for (const { operationId, requestBody } of operations) {
      expect(JSON.stringify(requestBody?.content?.["application/json"]?.example ?? ""), operationId).not.toMatch(
        /"(string|text)"[,}\]]/,
      )
    }
  })
})
