/** A Handle as a request names it. What the name stands for is the policy's to find. */
import { Schema } from "effect"
import { Text } from "../Text.ts"

/** Any spelling of a Handle names its Identity. */
export const HandleText = Text.check(Schema.isMaxLength(200))

/** One in a path or a query. */
export const HandleParam = HandleText.annotate({ description: "The Handle in any spelling." })
