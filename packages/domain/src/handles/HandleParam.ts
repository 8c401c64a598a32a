/** A Handle in a request. The policy check looks up the Identity. */
import { Schema } from "effect"
import { Text } from "../Text.ts"

/**
 * Accepts any spelling of a Handle. An email address gets its own message, since callers confuse it with the Handle,
 * which is the part before the @.
 */
export const HandleText = Text.check(
  Schema.isMaxLength(200, {
    // Documents the form of a Handle. Other texts are accepted and name no Identity, which the operation reports.
    toJsonSchema: () => ({ pattern: "^@?[A-Za-z0-9-]+$", minLength: 3, maxLength: 64 }),
  }),
  Schema.makeFilter((text: string) => text.indexOf("@", 1) === -1, {
    expected: "a Handle such as `ada`, not an email address",
  }),
)

/** A Handle to claim. The operation validates it and reports every violation as `handle_invalid`. */
export const WantedHandle = Schema.String.check(
  Schema.isMaxLength(1_048_576, {
    toJsonSchema: () => ({ pattern: "^[A-Za-z0-9-]+$", minLength: 3, maxLength: 63 }),
  }),
)

/** A Handle in a path or query. */
export const HandleParam = HandleText.annotate({
  description: "The Handle; case, hyphens and a leading @ are ignored.",
})
