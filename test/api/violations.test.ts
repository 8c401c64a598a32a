/**
 * Compares the messages about invalid members of request bodies with `violations.txt`, for every operation. After an intended
 * change, `npm test -- test/api/violations --update=all` writes the file anew.
 */
import { document } from "@svc/api/openapi/Document"
import { violationsOf } from "@svc/api/problems/Violations"
import type { Violation } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { expect, it } from "vitest"
import { operations } from "./Operations.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = any
const resolved = (schema: Json): Json =>
  schema?.$ref === undefined ? (schema ?? {}) : resolved(document["components"].schemas[schema.$ref.split("/").at(-1)])
const membersOf = (schema: Json): ReadonlyArray<string> => {
  const { properties = {}, anyOf = [], oneOf = [] } = resolved(schema)
  return [...new Set([...Object.keys(properties), ...[...anyOf, ...oneOf].flatMap(membersOf)])]
}

/** Values that hardly any member may have, alone and in a list. */
const wrong = [{}, "\n", [{}], ["\n"]]

it("Every member of a body that is not valid is named with what is expected", async () => {
  const lines: Array<string> = []
  for (const { body, endpoint, id } of operations) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}")
    const content = document["paths"][path][endpoint.method.toLowerCase()].requestBody?.content
    const members = membersOf(content?.["application/json"]?.schema)
    const found = (sent: Json) =>
      Effect.runPromise(
        violationsOf({ kind: "Payload", cause: { issue: undefined } } as never, endpoint).pipe(
          Effect.catchDefect(() => Effect.succeed([])),
          Effect.provideService(
            HttpServerRequest.HttpServerRequest,
            HttpServerRequest.fromWeb(new Request("http://x/", { method: "POST", body: JSON.stringify(sent) })),
          ),
        ),
      )
    for (const member of members) {
      const all = await Promise.all(wrong.map((value) => found({ ...body, [member]: value })))
      const texts = all
        .flat()
        .filter(({ path: at }: Violation) => at.startsWith(`/${member}`))
        .map(({ message, path: at }) => `${at.slice(member.length + 1)} ${message}`.trim())
      lines.push(`${id} ${member}: ${[...new Set(texts)].join("; ")}`)
    }
    if (members.length === 0) continue
    lines.push(`${id}: ${(await found({ ...body, unknown: 1 })).map(({ message }) => message).join("; ")}`)
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("violations.txt")
})
