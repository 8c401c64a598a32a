/** Lists with elements that are expensive to validate. */
import { boundedList } from "@svc/domain/BoundedList"
import { Result, Schema, SchemaIssue } from "effect"
import { wholeList } from "@svc/domain/Paging"
import { expect, it } from "vitest"

const issuesOf = (schema: Schema.Codec<any, any>, input: unknown) => {
  const decoded = Schema.decodeUnknownResult(schema)(input, { errors: "all" })
  return Result.isFailure(decoded)
    ? SchemaIssue.makeFormatterStandardSchemaV1()(decoded.failure.issue as never).issues.map(({ path, message }) => [
        path,
        message,
      ])
    : []
}

it("rejects a list that is too long without validating its entries", () => {
  let looked = 0
  const list = boundedList(Schema.String, 3, (text) => (looked++, text !== "no"), "a word")
  expect(issuesOf(list, ["a", "b", "c", "no"])).toHaveLength(1)
  expect(looked).toBe(0)
  expect(issuesOf(list, ["a", "b", "c"])).toEqual([])
  expect(issuesOf(list, ["a", "no"])).toEqual([[[1], "Expected a word"]])
  expect(looked).toBe(5)
})

it("returns short lists of an account whole, unless the caller gives a limit", () => {
  expect(wholeList({ cursor: "c" })).toEqual({ cursor: "c", limit: 1000 })
  expect(wholeList({ limit: 5 })).toEqual({ limit: 5 })
})
