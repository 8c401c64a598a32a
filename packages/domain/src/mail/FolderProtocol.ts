/**
 * What mail programs change (RFC 9051): folders, and what stands in them. UIDs are of a folder; sets of them are ranges.
 * Everything that is many is asked for in portions of {@link limits}, so that no message holds its actor for long.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { IdentityNotReady, NotFound } from "../problems/Problem.ts"
import { FlagChange } from "./Flags.ts"
import { ReceivedMail } from "./MailboxProtocol.ts"

/** Messages in one change of a folder; folders of an Identity. */
export const limits = { messages: 1_000, folders: 1_000 }

/** The special use of a folder (RFC 6154). */
export const FolderUse = Schema.Literals(["inbox", "sent", "drafts", "junk", "trash", "archive"])
export type FolderUse = typeof FolderUse.Type

/** Why a folder does not change: `missing` and `exists` are its name's, `taken` its use's. */
export class FolderRefused extends Schema.TaggedError<FolderRefused>()("FolderRefused", {
  reason: Schema.Literals(["missing", "exists", "taken", "too_many", "inbox", "full", "too_many_labels"]),
}) {}

const Uids = Schema.Array(Schema.Tuple([Schema.Int, Schema.Int]))
export type UidRanges = typeof Uids.Type

const refusals = failures(NotFound, IdentityNotReady, FolderRefused)

/** Makes the folders above it as well. */
export const CreateFolder = Rpc.make("CreateFolder", {
  payload: { ...tenant, name: Schema.String, use: Schema.NullOr(FolderUse) },
  error: refusals,
})

/** With what stands in it and nowhere else; the folders below it stay. */
export const DeleteFolder = Rpc.make("DeleteFolder", { payload: { ...tenant, name: Schema.String }, error: refusals })

/** With the folders below it. INBOX leaves an empty one behind (RFC 9051 section 6.3.6). */
export const RenameFolder = Rpc.make("RenameFolder", {
  payload: { ...tenant, from: Schema.String, to: Schema.String },
  error: refusals,
})

export const SubscribeFolder = Rpc.make("SubscribeFolder", {
  payload: { ...tenant, name: Schema.String, subscribed: Schema.Boolean },
  error: refusals,
})

/** Changes the marks of messages in a folder. Repeating it changes nothing more. */
export const ChangeFolderFlags = Rpc.make("ChangeFolderFlags", {
  payload: {
    ...tenant,
    folder_id: Uuid,
    uids: Uids,
    change: Schema.Struct({
      ...FlagChange.fields,
      deleted: Schema.optional(Schema.Boolean),
      draft: Schema.optional(Schema.Boolean),
    }),
    unchanged_since: Schema.optional(Schema.Int),
  },
  success: Schema.Struct({
    /** Messages that `unchanged_since` left alone. */
    modified: Schema.Array(Schema.Int),
    modseq: Schema.Int,
  }),
  error: refusals,
})
export type FolderFlagChange = (typeof ChangeFolderFlags)["payloadSchema"]["Type"]["change"]

const Placement = Schema.Struct({
  uid_validity: Schema.Int,
  /** UIDs there and here, in order; none of here where the same message came before. */
  from: Schema.Array(Schema.Int),
  to: Schema.Array(Schema.Int),
  /** In place of them, where all were asked for: those of there, and the first of here, null where nobody noted it. */
  whole: Schema.optional(Schema.Struct({ from: Uids, first: Schema.NullOr(Schema.Int) })),
})
export type Placement = typeof Placement.Type

/**
 * A message that a program brings; it raises no Event. Comes with its content, or after its content was stored. With
 * `draft` it is the picture of that draft of the API, at that version, and no message of the API.
 */
export const AppendMail = Rpc.make("AppendMail", {
  payload: {
    ...tenant,
    folder: Schema.String,
    mail: ReceivedMail,
    change: Schema.Struct({
      ...FlagChange.fields,
      deleted: Schema.optional(Schema.Boolean),
      draft: Schema.optional(Schema.Boolean),
    }),
    draft: Schema.optional(Schema.Struct({ id: Uuid, version: Schema.Int })),
  },
  success: Schema.Struct({ uid_validity: Schema.Int, uid: Schema.Int }),
  error: refusals,
})

/** Into another folder; `move` takes them out of this one. `whole`: all that are named, in one commit; a portion else. */
export const CopyMessages = Rpc.make("CopyMessages", {
  payload: {
    ...tenant,
    folder_id: Uuid,
    uids: Uids,
    to: Schema.String,
    move: Schema.Boolean,
    whole: Schema.optional(Schema.Boolean),
  },
  success: Placement,
  error: refusals,
})

/** Takes the pictures of drafts out that went or were changed; `left` says whether there are more. */
export const HideDrafts = Rpc.make("HideDrafts", {
  payload: tenant,
  success: Schema.Struct({ left: Schema.Boolean }),
  error: refusals,
})

/** Files what came to a subaddress tag in the folder of the tag, where the Mailbox is set to. */
export const FileTags = Rpc.make("FileTags", {
  payload: tenant,
  success: Schema.Struct({ left: Schema.Boolean }),
  error: refusals,
})

/** Takes those out that are marked deleted, at most so many at once; `left` says whether there are more. */
export const ExpungeFolder = Rpc.make("ExpungeFolder", {
  payload: { ...tenant, folder_id: Uuid, uids: Schema.NullOr(Uids) },
  success: Schema.Struct({ left: Schema.Boolean }),
  error: refusals,
})

export const FolderMessages = RpcGroup.make(
  CreateFolder,
  DeleteFolder,
  RenameFolder,
  SubscribeFolder,
  ChangeFolderFlags,
  AppendMail,
  CopyMessages,
  ExpungeFolder,
  HideDrafts,
  FileTags,
)
