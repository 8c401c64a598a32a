/** A Handle as a request names it. What the name stands for is the policy's to find. */
import { Schema } from "effect"
import { Text } from "../Text.ts"

/**
 * Any spelling of a Handle names its Identity. An email address is told apart from a Handle that does not exist, since
 * callers confuse the two: the Handle is what stands before the @.
 */
export const HandleText = Text.check(
  Schema.isMaxLength(200, {
    // What a Handle is, for readers of the document. Other texts name no Identity, which is the operation's to say.
    toJsonSchema: () => ({ pattern: "^@?[A-Za-z0-9-]+$", minLength: 3, maxLength: 64 }),
  }),
  Schema.makeFilter((text: string) => text.indexOf("@", 1) === -1, {
    expected: "a Handle such as `ada`, not an email address",
  }),
)

/** A name to claim. The operation judges it, with the code `handle_invalid` for whatever breaks the rules. */
export const WantedHandle = Schema.String.check(
  Schema.isMaxLength(1_048_576, {
    toJsonSchema: () => ({ pattern: "^[A-Za-z0-9-]+$", minLength: 3, maxLength: 63 }),
  }),
)

/** One in a path or a query. */
export const HandleParam = HandleText.annotate({
  description: "The Handle, in any spelling: case, hyphens and a leading @ make no difference.",
})
