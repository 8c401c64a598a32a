/** What a request's violations are called: in the words of who wrote the request, not of the schemas that judged it. */
import { SchemaIssue } from "effect"

const kinds: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  null: "null",
  array: "a list",
  object: "an object",
}

const kind = (word: string) => kinds[word] ?? word

/** What is said of a member that a body or a query does not have. */
export const unknownMember = "unknown member"

const leaf: SchemaIssue.LeafHook = (issue) => {
  switch (issue._tag) {
    case "MissingKey":
      return issue.annotations?.messageMissingKey ?? "missing"
    case "UnexpectedKey":
      return unknownMember
    default:
      return SchemaIssue.defaultLeafHook(issue)
  }
}

/** The library's `Expected a value with a length of at least 1, got ""` in our words; the value stays with who sent it. */
export const reworded = (message: string): string => {
  const expected = /^Expected (.*?)(?:, got .*)?$/s.exec(message)?.[1]
  if (expected === undefined) return message
  return `expected ${expected
    // Of a list as of a text, and which of the two it is the issue does not say.
    .replace(/^a value with a length of at /, "a length of at ")
    // Of a query: every number there is written as text.
    .replace("a string representing a finite number", "a number")
    .replaceAll(" | ", " or ")
    .replace(/^(?:an? )?(string|number|boolean|null|array|object)$/, (_, word: string) => kind(word))}`
}

const formatter = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook: leaf })

/** Each violation of a request, with its path. */
export const format = (issue: SchemaIssue.Issue) => ({
  issues: formatter(issue).issues.map(({ path, message }) => ({ path, message: reworded(message) })),
})
