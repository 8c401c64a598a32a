/**
 * The supported commands, as the parser passes them to a session. `uid` says whether numbers are UIDs (RFC 9051 section
 * 6.4.9).
 */
import type { Zoned } from "./Dates.ts"
import type { FetchItem } from "./FetchItems.ts"
import type { SearchKey } from "./SearchKeys.ts"
import type * as Sets from "./Sets.ts"

/** A set of messages; `saved` is `$`, the result of the last search (section 6.4.4.1). */
export type Messages = Sets.SequenceSet | "saved"

export const statusItems = [
  "MESSAGES",
  "RECENT",
  "UIDNEXT",
  "UIDVALIDITY",
  "UNSEEN",
  "DELETED",
  "SIZE",
  "HIGHESTMODSEQ",
  "MAILBOXID",
  "APPENDLIMIT",
] as const
export type StatusItem = (typeof statusItems)[number]

export interface Listing {
  readonly reference: string
  readonly patterns: ReadonlyArray<string>
  readonly select: ReadonlySet<string>
  readonly returns: ReadonlySet<string>
  readonly status: ReadonlyArray<StatusItem>
}

export interface Resync {
  readonly uidValidity: number
  readonly modseq: number
  readonly known: Sets.SequenceSet | undefined
}

export interface SearchReturn {
  readonly returns: ReadonlySet<"MIN" | "MAX" | "COUNT" | "ALL" | "SAVE">
}

/** A key of SORT; the first one has priority. */
export interface SortKey {
  readonly by: "ARRIVAL" | "CC" | "DATE" | "FROM" | "SIZE" | "SUBJECT" | "TO" | "DISPLAYFROM" | "DISPLAYTO"
  readonly reverse: boolean
}

interface Searching {
  readonly uid: boolean
  readonly key: SearchKey
  /** Upper case; UTF-8 if undefined. */
  readonly charset: string | undefined
  readonly returns: SearchReturn["returns"] | undefined
}

/** Commands without arguments. */
export type Plain =
  | "CAPABILITY"
  | "NOOP"
  | "LOGOUT"
  | "STARTTLS"
  | "CHECK"
  | "CLOSE"
  | "UNSELECT"
  | "IDLE"
  | "NAMESPACE"

export type Action =
  | { readonly name: Plain }
  | { readonly name: "ID"; readonly fields: ReadonlyArray<string | null> }
  | { readonly name: "LOGIN"; readonly user: string; readonly password: string }
  | { readonly name: "AUTHENTICATE"; readonly mechanism: string; readonly initial: string | undefined }
  | { readonly name: "ENABLE"; readonly capabilities: ReadonlyArray<string> }
  | { readonly name: "COMPRESS"; readonly algorithm: string }
  | {
      readonly name: "SELECT" | "EXAMINE"
      readonly mailbox: string
      readonly condstore: boolean
      readonly resync: Resync | undefined
    }
  | { readonly name: "CREATE"; readonly mailbox: string; readonly uses: ReadonlyArray<string> }
  | { readonly name: "DELETE" | "SUBSCRIBE" | "UNSUBSCRIBE" | "GETQUOTAROOT"; readonly mailbox: string }
  | { readonly name: "RENAME"; readonly from: string; readonly to: string }
  | { readonly name: "LIST"; readonly listing: Listing }
  | { readonly name: "LSUB"; readonly reference: string; readonly pattern: string }
  | { readonly name: "STATUS"; readonly mailbox: string; readonly items: ReadonlyArray<StatusItem> }
  | { readonly name: "GETQUOTA"; readonly root: string }
  | {
      readonly name: "APPEND"
      readonly mailbox: string
      readonly flags: ReadonlyArray<string>
      readonly at: Zoned | undefined
      /** `aside`: the literal was streamed and is not held in memory. */
      readonly message: Buffer | "aside"
    }
  | { readonly name: "EXPUNGE"; readonly messages: Messages | undefined }
  | ({ readonly name: "SEARCH" } & Searching)
  | ({ readonly name: "SORT"; readonly keys: ReadonlyArray<SortKey> } & Searching)
  | {
      readonly name: "THREAD"
      readonly uid: boolean
      readonly algorithm: string
      readonly charset: string
      readonly key: SearchKey
    }
  | {
      readonly name: "FETCH"
      readonly uid: boolean
      readonly messages: Messages
      readonly items: ReadonlyArray<FetchItem>
      readonly changedSince: number | undefined
      readonly vanished: boolean
    }
  | {
      readonly name: "STORE"
      readonly uid: boolean
      readonly messages: Messages
      readonly how: "set" | "add" | "remove"
      readonly silent: boolean
      readonly flags: ReadonlyArray<string>
      readonly unchangedSince: number | undefined
    }
  | { readonly name: "COPY" | "MOVE"; readonly uid: boolean; readonly messages: Messages; readonly mailbox: string }

export type Command =
  | { readonly _tag: "Command"; readonly tag: string; readonly action: Action }
  /** `tag` is `*` if the tag is invalid. */
  | { readonly _tag: "Malformed"; readonly tag: string; readonly message: string; readonly name: string }

export type Named<Name extends Action["name"]> = Extract<Action, { readonly name: Name }>
