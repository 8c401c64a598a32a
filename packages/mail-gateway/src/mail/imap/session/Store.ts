/**
 * The port to one Mailbox. The session knows the protocol but not where mail is stored; tests use a store in memory.
 * All message numbers are UIDs, since sequence numbers belong to the session.
 */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { type Effect, Schema, type Scope, type Stream } from "effect"
import type { Structure } from "../../mime/Structure.ts"
import type { SortKey } from "../protocol/Command.ts"
import type { Zoned } from "../protocol/Dates.ts"
import type { NumbersKey, SearchKey } from "../protocol/SearchKeys.ts"
import type { Ranges } from "../protocol/Sets.ts"
import type { Upload } from "./Spool.ts"

/** The Mailbox rejects a command; `code` is the response code for the client (RFC 5530). */
export class Refused extends Schema.TaggedError<Refused>()("ImapRefused", {
  code: Schema.Literals([
    "NONEXISTENT",
    "TRYCREATE",
    "ALREADYEXISTS",
    "CANNOT",
    "LIMIT",
    "OVERQUOTA",
    "USEATTR",
    "NOPERM",
    "TOOBIG",
  ]),
  message: Schema.String,
}) {}

export type StoreError = Refused | Unavailable

export interface Folder {
  readonly id: string
  readonly name: string
  readonly use: FolderUse | null
  readonly uidValidity: number
  readonly uidNext: number
}

export interface Folders {
  readonly folders: ReadonlyArray<Folder>
  /** Subscribed names; a subscribed folder need not exist. */
  readonly subscribed: ReadonlySet<string>
}

/** The flags of a message. */
export interface Marked {
  readonly uid: number
  readonly modseq: number
  /** IMAP flags. */
  readonly flags: ReadonlyArray<string>
}

export interface Opened {
  readonly modseq: number
  readonly uidNext: number
  /** Ascending. */
  readonly uids: ReadonlyArray<number>
  readonly firstUnseen: number | undefined
  /** The first UID that no session has reported yet. */
  readonly recentFrom: number
  readonly keywords: ReadonlyArray<string>
}

/** The changes of a folder since a value of the change counter. */
export interface Changes {
  readonly modseq: number
  readonly uidNext: number
  /** New messages and messages with changed flags, ordered by UID. */
  readonly changed: ReadonlyArray<Marked>
  readonly vanished: ReadonlyArray<number>
  /** Whether the folder was deleted. */
  readonly isGone: boolean
  /** The first UID that no session has reported yet. */
  readonly recentFrom: number
}

export interface Stored extends Marked {
  /** `msg_…` and `thr_…`. */
  readonly id: string
  readonly threadId: string
  readonly size: number
  readonly at: Date
  /** Time zone of `at` in minutes east of UTC. */
  readonly zone: number
  /** Set for {@link Detailed} messages; otherwise empty. */
  readonly snippet: string
  /** All its bytes, if they were requested and the message is small; otherwise use `Store.bytes`. */
  readonly raw?: Uint8Array | undefined
}

/** A message with its envelope and structure. */
export interface Detailed extends Stored {
  readonly envelope: string
  readonly structure: Structure
}

export interface Status {
  readonly uidNext: number
  readonly messages: number
  /** Messages that no session has reported yet. */
  readonly recent: number
  readonly unseen: number
  readonly deleted: number
  readonly size: number
  readonly modseq: number
}

/** Changes by STORE; omitted flags are unchanged. */
export interface FlagChange {
  readonly seen?: boolean
  readonly flagged?: boolean
  readonly answered?: boolean
  readonly deleted?: boolean
  readonly draft?: boolean
  readonly labels?: ReadonlyArray<string>
  readonly add_labels?: ReadonlyArray<string>
  readonly remove_labels?: ReadonlyArray<string>
}

export interface Copied {
  readonly uidValidity: number
  readonly from: ReadonlyArray<number>
  readonly to: ReadonlyArray<number>
}

/** The fields that THREAD uses (RFC 5256). */
export interface Threadable {
  readonly uid: number
  readonly messageId: string | null
  readonly references: ReadonlyArray<string>
  readonly subject: string
  readonly sent: number
}

/** Options for reading messages. */
export interface Wanted {
  /** Only messages changed after this value. */
  readonly since?: number | undefined
  /** Whether their bytes will be read next. */
  readonly bytes?: boolean
  /** Whether they are all messages of the folder that the session knows. */
  readonly whole?: boolean
}

/** The result of a search: ascending UIDs, and the last change of each. */
interface Found {
  readonly uids: ReadonlyArray<number>
  readonly modseqs: ReadonlyArray<number>
}

export interface Store {
  readonly folders: Effect.Effect<Folders, StoreError>
  readonly status: (folder: Folder) => Effect.Effect<Status, StoreError>
  readonly open: (folder: Folder) => Effect.Effect<Opened, StoreError>
  /** Claims the messages below a UID as recent. Returns the first UID that no other session has claimed. */
  readonly claim: (folder: Folder, upTo: number) => Effect.Effect<number, StoreError>
  readonly changes: (folder: Folder, since: number) => Effect.Effect<Changes, StoreError>
  /** Ordered by UID. */
  readonly marked: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Marked, StoreError>
  readonly stored: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Stored, StoreError>
  readonly detailed: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Detailed, StoreError>
  /** Streams the stored bytes of a message. Ends early if the message is removed. */
  readonly bytes: (message: Stored, from: number, to: number) => Stream.Stream<Uint8Array, StoreError>
  /** Searches a folder; `numbers` resolves sets to UIDs. */
  readonly search: (
    folder: Folder,
    key: SearchKey,
    numbers: (set: NumbersKey) => Ranges,
  ) => Effect.Effect<Found, StoreError>
  readonly sorted: (
    folder: Folder,
    uids: Ranges,
    keys: ReadonlyArray<SortKey>,
  ) => Effect.Effect<ReadonlyArray<number>, StoreError>
  readonly threadable: (folder: Folder, uids: Ranges) => Effect.Effect<ReadonlyArray<Threadable>, StoreError>
  /** Changes flags. Returns the UIDs that were skipped because they changed after `unchangedSince`. */
  readonly change: (
    folder: Folder,
    uids: Ranges,
    change: FlagChange,
    unchangedSince?: number,
  ) => Effect.Effect<ReadonlyArray<number>, StoreError>
  readonly append: (
    folder: string,
    message: Upload,
    flags: FlagChange,
    at: Zoned | undefined,
  ) => Effect.Effect<{ readonly uidValidity: number; readonly uid: number }, StoreError>
  readonly copy: (folder: Folder, uids: Ranges, to: string, move: boolean) => Effect.Effect<Copied, StoreError>
  /** Removes messages with \Deleted. */
  readonly expunge: (folder: Folder, uids: Ranges | undefined) => Effect.Effect<void, StoreError>
  readonly create: (name: string, use: FolderUse | null) => Effect.Effect<void, StoreError>
  readonly remove: (name: string) => Effect.Effect<void, StoreError>
  readonly rename: (from: string, to: string) => Effect.Effect<void, StoreError>
  readonly subscribe: (name: string, subscribed: boolean) => Effect.Effect<void, StoreError>
  readonly quota: Effect.Effect<{ readonly used: number; readonly limit: number }, StoreError>
  /** Calls `heard` when the Mailbox changes, until the scope closes. */
  readonly watch: (notify: () => void) => Effect.Effect<void, never, Scope.Scope>
}
