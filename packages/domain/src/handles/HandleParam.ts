/** A Handle as a request names it. What the name stands for is the policy's to find. */
import { Schema } from "effect"
import { Text } from "../Text.ts"

/** Any spelling of a Handle names its Identity. */
export const HandleText = Text.check(
  Schema.isMaxLength(200, {
    // What a Handle is, for who asks beforehand. Whether a text is one is judged by the operation, with a code of its own.
    toJsonSchema: () => ({ pattern: "^@?[A-Za-z0-9-]+$", minLength: 3, maxLength: 64 }),
  }),
)

/** One in a path or a query. */
export const HandleParam = HandleText.annotate({
  description: "The Handle, in any spelling: case, hyphens and a leading @ make no difference.",
})
