/**
 * Schemas for responses of Mastodon's API. Members that compatible servers omit (Pleroma, Akkoma, GoToSocial) are
 * optional. Lists are truncated before they are validated.
 */
import { Effect, Schema } from "effect"
import { type PlatformFailure, PlatformUnreachable } from "../Failure.ts"

/** An id: digits at Mastodon, ULIDs or flake ids at other servers. */
const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/))
const Short = Schema.String.check(Schema.isMaxLength(2048))
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const Account = Schema.Struct({
  id: Id,
  username: Short,
  /** `user@domain`, or `user` for accounts of the server itself. */
  acct: Short,
  display_name: optional(Schema.String),
  bot: optional(Schema.Boolean),
  note: optional(Schema.String),
  url: optional(Short),
  source: optional(Schema.Struct({ note: optional(Schema.String) })),
})
export type Account = typeof Account.Type

export const Status = Schema.Struct({
  id: Id,
  uri: Short,
  url: optional(Short),
  account: Account,
  content: Schema.String,
  spoiler_text: optional(Schema.String),
  visibility: Schema.String,
  in_reply_to_id: optional(Id),
  in_reply_to_account_id: optional(Id),
  created_at: Schema.String,
})
export type Status = typeof Status.Type

export const Notification = Schema.Struct({
  id: Id,
  type: Schema.String,
  created_at: Schema.String,
  status: optional(Status),
})
export type Notification = typeof Notification.Type

export const Conversation = Schema.Struct({ id: Id, last_status: optional(Status) })
export const Context = Schema.Struct({ ancestors: Schema.Array(Status), descendants: Schema.Array(Status) })
export const Found = Schema.Struct({
  statuses: optional(Schema.Array(Status)),
  accounts: optional(Schema.Array(Account)),
})

export const Application = Schema.Struct({ client_id: Short, client_secret: Short })
export const Token = Schema.Struct({
  access_token: Short,
  scope: optional(Schema.String),
  /** Lifetime in seconds. Tokens of Pleroma and Akkoma expire and can be refreshed. */
  expires_in: optional(Schema.Number),
  refresh_token: optional(Short),
})

/** Any number; the code that uses it applies bounds. */
const Count = Schema.Finite
/** The instance document, version 2 or 1. */
export const Instance = Schema.Struct({
  domain: optional(Short),
  uri: optional(Short),
  version: optional(Short),
  max_toot_chars: optional(Count),
  urls: optional(Schema.Struct({ streaming_api: optional(Short) })),
  configuration: optional(
    Schema.Struct({
      urls: optional(Schema.Struct({ streaming: optional(Short) })),
      statuses: optional(
        Schema.Struct({
          max_characters: optional(Count),
          max_media_attachments: optional(Count),
          characters_reserved_per_url: optional(Count),
        }),
      ),
      media_attachments: optional(
        Schema.Struct({
          supported_mime_types: optional(Schema.Array(Schema.String)),
          image_size_limit: optional(Count),
        }),
      ),
    }),
  ),
})

export const Rule = Schema.Struct({ id: Schema.String, text: Schema.String, hint: optional(Schema.String) })
export const Media = Schema.Struct({ id: Id, url: optional(Schema.String) })

/** The used members of authorization server metadata (RFC 8414). */
export const Metadata = Schema.Struct({
  issuer: optional(Short),
  authorization_endpoint: optional(Short),
  code_challenge_methods_supported: optional(Schema.Array(Schema.String)),
})

const members = ["statuses", "accounts", "ancestors", "descendants"]

/** Truncates lists, which may have any length. */
const cut = (data: unknown, atMost: number): unknown => {
  if (Array.isArray(data)) return data.slice(0, atMost)
  if (typeof data !== "object" || data === null) return data
  const copy: Record<string, unknown> = { ...data }
  for (const member of members) {
    const list = copy[member]
    if (Array.isArray(list)) copy[member] = list.slice(0, atMost)
  }
  return copy
}

/** Largest number of entries that are read from a list. */
const entriesAtMost = 200

const invalidResponse = () =>
  new PlatformUnreachable({ message: "The server's response does not match Mastodon's API." })

/** Returns a decoder for responses. Invalid responses fail with `PlatformUnreachable`. */
export const as = <S extends Schema.Constraint>(
  schema: S,
): ((data: unknown) => Effect.Effect<S["Type"], PlatformFailure>) => {
  const decode = Schema.decodeUnknownEffect(schema as unknown as Schema.Codec<S["Type"]>)
  return (data) => Effect.mapError(decode(cut(data, entriesAtMost)), invalidResponse)
}

/** Returns a decoder for lists that skips invalid entries. */
export const validEntries = <S extends Schema.Constraint>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema as unknown as Schema.Codec<S["Type"]>)
  return (data: unknown): ReadonlyArray<S["Type"]> =>
    Array.isArray(data)
      ? data.slice(0, entriesAtMost).flatMap((entry: unknown) => {
          const known = decode(entry)
          return known._tag === "Some" ? [known.value] : []
        })
      : []
}

/** Returns a decoder like {@link validEntries} that fails unless the response is a list. */
export const listOf = <S extends Schema.Constraint>(schema: S) => {
  const entries = validEntries(schema)
  return (data: unknown): Effect.Effect<ReadonlyArray<S["Type"]>, PlatformFailure> =>
    Array.isArray(data) ? Effect.succeed(entries(data)) : Effect.fail(invalidResponse())
}
