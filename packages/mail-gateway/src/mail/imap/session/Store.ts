/**
 * What a session needs of one Mailbox. The session knows the protocol and nothing of where mail is kept; over a store in
 * memory it is tested without any. All numbers of messages are UIDs: sequence numbers are the session's own.
 */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { type Effect, Schema, type Scope, type Stream } from "effect"
import type { Structure } from "../../mime/Structure.ts"
import type { SortKey } from "../protocol/Command.ts"
import type { Zoned } from "../protocol/Dates.ts"
import type { NumbersKey, SearchKey } from "../protocol/SearchKeys.ts"
import type { Ranges } from "../protocol/Sets.ts"
import type { Brought } from "./Spool.ts"

/** The Mailbox refuses; `code` is the response code that a client can act on (RFC 5530). */
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
  /** Names; not all of them need exist. */
  readonly subscribed: ReadonlySet<string>
}

/** A message as its marks show it. */
export interface Marked {
  readonly uid: number
  readonly modseq: number
  /** As IMAP spells them. */
  readonly flags: ReadonlyArray<string>
}

export interface Opened {
  readonly modseq: number
  readonly uidNext: number
  /** In order. */
  readonly uids: ReadonlyArray<number>
  readonly firstUnseen: number | undefined
  /** Of messages from this UID on no session was told yet. */
  readonly recentFrom: number
  readonly keywords: ReadonlyArray<string>
}

/** What became of a folder since a value of the change counter. */
export interface Changes {
  readonly modseq: number
  readonly uidNext: number
  /** Marked anew or arrived, in the order of their UIDs. */
  readonly changed: ReadonlyArray<Marked>
  readonly vanished: ReadonlyArray<number>
  /** The folder is no more. */
  readonly isGone: boolean
  /** Of messages from this UID on no session was told yet. */
  readonly recentFrom: number
}

export interface Stored extends Marked {
  /** `msg_…` and `thr_…`. */
  readonly id: string
  readonly threadId: string
  readonly size: number
  readonly at: Date
  /** In which its time was given: minutes east of UTC. */
  readonly zone: number
  /** Of a {@link Detailed} message; else empty. */
  readonly snippet: string
  /** All its bytes, where they were wanted and are few; others are read by `Store.bytes`. */
  readonly raw?: Uint8Array | undefined
}

/** A message with what is answered of its parts. */
export interface Detailed extends Stored {
  readonly envelope: string
  readonly structure: Structure
}

export interface Status {
  readonly uidNext: number
  readonly messages: number
  /** Those of which no session was told yet. */
  readonly recent: number
  readonly unseen: number
  readonly deleted: number
  readonly size: number
  readonly modseq: number
}

/** What STORE changes; marks that are left out stay. */
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

/** What THREAD goes by (RFC 5256). */
export interface Threadable {
  readonly uid: number
  readonly messageId: string | null
  readonly references: ReadonlyArray<string>
  readonly subject: string
  readonly sent: number
}

/** What is asked of messages. */
export interface Wanted {
  /** Only what was changed after it. */
  readonly since?: number | undefined
  /** Their bytes are asked for next. */
  readonly bytes?: boolean
  /** They are all that the folder has, as far as the session knows. */
  readonly whole?: boolean
}

/** What a search found: UIDs in order, and of each its last change. */
export interface Found {
  readonly uids: ReadonlyArray<number>
  readonly modseqs: ReadonlyArray<number>
}

export interface Store {
  readonly folders: Effect.Effect<Folders, StoreError>
  readonly status: (folder: Folder) => Effect.Effect<Status, StoreError>
  readonly open: (folder: Folder) => Effect.Effect<Opened, StoreError>
  /** Takes it on itself to tell a client of the messages below a UID; answers from which one on nobody else did. */
  readonly claim: (folder: Folder, upTo: number) => Effect.Effect<number, StoreError>
  readonly changes: (folder: Folder, since: number) => Effect.Effect<Changes, StoreError>
  /** In the order of UIDs. */
  readonly marked: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Marked, StoreError>
  readonly stored: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Stored, StoreError>
  readonly detailed: (folder: Folder, uids: Ranges, wanted?: Wanted) => Stream.Stream<Detailed, StoreError>
  /** Bytes of a message as it is stored, in portions. Ends early where the message went meanwhile. */
  readonly bytes: (message: Stored, from: number, to: number) => Stream.Stream<Uint8Array, StoreError>
  /** `numbers` are UIDs that sets of the key stand for. */
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
  /** Answers the UIDs that were changed after `unchangedSince` and so left alone. */
  readonly change: (
    folder: Folder,
    uids: Ranges,
    change: FlagChange,
    unchangedSince?: number,
  ) => Effect.Effect<ReadonlyArray<number>, StoreError>
  readonly append: (
    folder: string,
    message: Brought,
    flags: FlagChange,
    at: Zoned | undefined,
  ) => Effect.Effect<{ readonly uidValidity: number; readonly uid: number }, StoreError>
  readonly copy: (folder: Folder, uids: Ranges, to: string, move: boolean) => Effect.Effect<Copied, StoreError>
  /** Removes what is marked deleted. */
  readonly expunge: (folder: Folder, uids: Ranges | undefined) => Effect.Effect<void, StoreError>
  readonly create: (name: string, use: FolderUse | null) => Effect.Effect<void, StoreError>
  readonly remove: (name: string) => Effect.Effect<void, StoreError>
  readonly rename: (from: string, to: string) => Effect.Effect<void, StoreError>
  readonly subscribe: (name: string, subscribed: boolean) => Effect.Effect<void, StoreError>
  readonly quota: Effect.Effect<{ readonly used: number; readonly limit: number }, StoreError>
  /** Calls `heard` when something of the Mailbox changed; for as long as the scope. */
  readonly watch: (heard: () => void) => Effect.Effect<void, never, Scope.Scope>
}
