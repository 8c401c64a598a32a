import { createConfig, lintFromString } from "@redocly/openapi-core"
import { Validator } from "@seriousme/openapi-schema-validator"
import spectralCore from "@stoplight/spectral-core"
import spectralRulesets from "@stoplight/spectral-rulesets"
import { document } from "@svc/api/openapi/Document"

import { Api } from "@svc/domain/Api"
import { describe, expect, it } from "vitest"

const operations = Object.values<any>(document["paths"]).flatMap((path) => Object.values<any>(path))

describe("the OpenAPI document", () => {
  it("is accepted by Redocly, Spectral and the schema validator without a remark", { timeout: 60_000 }, async () => {
    const source = JSON.stringify(document)
    const redocly = await lintFromString({
      source,
      absoluteRef: "openapi.json",
      config: await createConfig({ extends: ["recommended"] }),
    })
    expect(redocly.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset({ extends: [[spectralRulesets.oas, "all"]] } as never)
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
    expect(tags.map(({ name }) => name)).toEqual(Object.keys(Api.groups).toSorted())
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
})
