/** Words the violations of a request for its author, without terms of the schemas. */
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

/** The text for an unknown member of a body or query. */
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

/** Rewords `Expected a value with a length of at least 1, got ""` without repeating the value. */
export const reworded = (message: string): string => {
  const expected = /^Expected (.*?)(?:, got .*)?$/s.exec(message)?.[1]
  if (expected === undefined) return message
  return `expected ${expected
    // Applies to lists and texts; the issue does not say which.
    .replace(/^a value with a length of at /, "a length of at ")
    // In a query, every number is text.
    .replace("a string representing a finite number", "a number")
    .replaceAll(" | ", " or ")
    .replace(/^(?:an? )?(string|number|boolean|null|array|object)$/, (_, word: string) => kind(word))}`
}

const formatter = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook: leaf })

/** Returns the violations of a request with their paths. */
export const format = (issue: SchemaIssue.Issue) => ({
  issues: formatter(issue).issues.map(({ path, message }) => ({ path, message: reworded(message) })),
})
