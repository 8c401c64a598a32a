/**
 * What is read of a server's answers, as Mastodon publishes its API; what others of its kind leave out is optional
 * (Pleroma and Akkoma, GoToSocial). Lists are cut before they are judged.
 */
import { Effect, Schema } from "effect"
import { type PlatformFailure, PlatformUnreachable } from "../Failure.ts"

/** Ids are numbers as text at Mastodon, and ULIDs or flakes elsewhere. */
export const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/))
const Short = Schema.String.check(Schema.isMaxLength(2048))
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const Account = Schema.Struct({
  id: Id,
  username: Short,
  /** With the domain, but for accounts of the server itself. */
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
  /** Pleroma's and Akkoma's tokens end, and can be refreshed. */
  expires_in: optional(Schema.Number),
  refresh_token: optional(Short),
})

/** Whatever number a server thinks of; who uses it bounds it. */
const Count = Schema.Finite
/** Version 2, and version 1 where there is no other. */
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

/** RFC 8414, as far as it is read. */
export const Metadata = Schema.Struct({
  issuer: optional(Short),
  authorization_endpoint: optional(Short),
  code_challenge_methods_supported: optional(Schema.Array(Schema.String)),
})

const members = ["statuses", "accounts", "ancestors", "descendants"]

/** Lists are as long as the server likes; we take so many of each. */
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

/** How many entries are taken of a list. */
export const entriesAtMost = 200

const foreign = () => new PlatformUnreachable({ message: "The server gave an answer that is not of Mastodon's API." })

/** The answer as the schema has it; anything else is no answer. */
export const as = <S extends Schema.Constraint>(
  schema: S,
): ((data: unknown) => Effect.Effect<S["Type"], PlatformFailure>) => {
  const decode = Schema.decodeUnknownEffect(schema as unknown as Schema.Codec<S["Type"]>)
  return (data) => Effect.mapError(decode(cut(data, entriesAtMost)), foreign)
}

/** Those entries of a list that are as the schema has them; one that is not costs no other. */
export const each = <S extends Schema.Constraint>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema as unknown as Schema.Codec<S["Type"]>)
  return (data: unknown): ReadonlyArray<S["Type"]> =>
    Array.isArray(data)
      ? data.slice(0, entriesAtMost).flatMap((one: unknown) => {
          const known = decode(one)
          return known._tag === "Some" ? [known.value] : []
        })
      : []
}

/** The same of an answer that must be a list. */
export const listOf = <S extends Schema.Constraint>(schema: S) => {
  const entries = each(schema)
  return (data: unknown): Effect.Effect<ReadonlyArray<S["Type"]>, PlatformFailure> =>
    Array.isArray(data) ? Effect.succeed(entries(data)) : Effect.fail(foreign())
}
