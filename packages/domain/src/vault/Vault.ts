/** Secrets of the Vault (interface.md "Vault secret", decisions.md "Resources"). */
import { Schema } from "effect"
import { Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

export const namePattern = /^[a-z0-9][a-z0-9._-]{0,127}$/

/** Maximum size of a value in bytes of UTF-8. */
export const maxValueBytes = 64 * 1024

/** Number of stored versions of a secret. */
export const versionsKept = 10

/** Maximum number of secrets of an account, and of each of its Identities. */
export const secretsAtMost = 1_000

const description = Schema.NullOr(Schema.String)

/** A secret in lists, without its value. `size` is the size of the value in bytes. */
export const Secret = Schema.Struct({
  name: Schema.String,
  size: Schema.Int,
  description,
  version: Schema.Int,
  created_at: Timestamp,
  updated_at: Timestamp,
}).annotate({ identifier: "Secret" })
export type Secret = typeof Secret.Type

export const SecretValue = Schema.Struct({
  name: Schema.String,
  value: Schema.String,
  version: Schema.Int,
  updated_at: Timestamp,
}).annotate({ identifier: "SecretValue" })
export type SecretValue = typeof SecretValue.Type

export const SecretVersion = Schema.Struct({ version: Schema.Int, size: Schema.Int, created_at: Timestamp }).annotate({
  identifier: "SecretVersion",
})

export const NewSecret = Schema.Struct({
  value: Text,
  description: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500)))),
})
export type NewSecret = typeof NewSecret.Type
