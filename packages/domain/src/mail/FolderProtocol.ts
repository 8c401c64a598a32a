/**
 * Messages for what IMAP clients change (RFC 9051): folders and their messages. UIDs belong to a folder, and sets of
 * UIDs are ranges. Large operations are split into batches of {@link limits}, so that no message occupies its actor for
 * long.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { IdentityNotReady, NotFound } from "../problems/Problem.ts"
import { FlagChange } from "./Flags.ts"
import { ReceivedMail } from "./MailboxProtocol.ts"

/** Maximum number of messages in one change, and of folders of an Identity. */
export const limits = { messages: 1_000, folders: 1_000 }

/** The special use of a folder (RFC 6154). */
export const FolderUse = Schema.Literals(["inbox", "sent", "drafts", "junk", "trash", "archive"])
export type FolderUse = typeof FolderUse.Type

/** Why a folder operation was rejected. `missing` and `exists` concern the name, `taken` the special use. */
export class FolderRefused extends Schema.TaggedError<FolderRefused>()("FolderRefused", {
  reason: Schema.Literals(["missing", "exists", "taken", "too_many", "inbox", "full", "too_many_labels"]),
}) {}

const Uids = Schema.Array(Schema.Tuple([Schema.Int, Schema.Int]))
export type UidRanges = typeof Uids.Type

const refusals = failures(NotFound, IdentityNotReady, FolderRefused)

/** Creates a folder and its missing parents. */
const CreateFolder = Rpc.make("CreateFolder", {
  payload: { ...tenant, name: Schema.String, use: Schema.NullOr(FolderUse) },
  error: refusals,
})

/** Deletes a folder and the messages that are in no other folder. Its subfolders stay. */
const DeleteFolder = Rpc.make("DeleteFolder", { payload: { ...tenant, name: Schema.String }, error: refusals })

/** Renames a folder and its subfolders. Renaming INBOX leaves an empty INBOX (RFC 9051 section 6.3.6). */
const RenameFolder = Rpc.make("RenameFolder", {
  payload: { ...tenant, from: Schema.String, to: Schema.String },
  error: refusals,
})

const SubscribeFolder = Rpc.make("SubscribeFolder", {
  payload: { ...tenant, name: Schema.String, subscribed: Schema.Boolean },
  error: refusals,
})

/** Changes the flags of messages in a folder. The operation is idempotent. */
const ChangeFolderFlags = Rpc.make("ChangeFolderFlags", {
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
    /** UIDs of messages that were skipped because of `unchanged_since`. */
    modified: Schema.Array(Schema.Int),
    modseq: Schema.Int,
  }),
  error: refusals,
})
export type FolderFlagChange = (typeof ChangeFolderFlags)["payloadSchema"]["Type"]["change"]

const Placement = Schema.Struct({
  uid_validity: Schema.Int,
  /** UIDs in the source and target folder, in order. `from` and `to` are empty for a repeated command. */
  from: Schema.Array(Schema.Int),
  to: Schema.Array(Schema.Int),
  /**
   * Replaces `from` and `to` if all messages were copied: the source UIDs and the first target UID, or null if it was
   * not recorded.
   */
  whole: Schema.optional(Schema.Struct({ from: Uids, first: Schema.NullOr(Schema.Int) })),
})
export type Placement = typeof Placement.Type

/**
 * Stores a message that an IMAP client uploads, without an Event. The content is in the message or was stored before.
 * With `draft`, the message is the IMAP copy of this version of an API draft and does not appear in the API.
 */
const AppendMail = Rpc.make("AppendMail", {
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

/**
 * Copies messages to another folder; `move` also removes them from this one. With `whole`, all messages are copied in
 * one commit, otherwise only one batch.
 */
const CopyMessages = Rpc.make("CopyMessages", {
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

/** Removes the IMAP copies of drafts that were sent, deleted or changed. `left` means that more remain. */
const HideDrafts = Rpc.make("HideDrafts", {
  payload: tenant,
  success: Schema.Struct({ left: Schema.Boolean }),
  error: refusals,
})

/** Moves mail to subaddresses into the folder of its tag, if the Mailbox is set to do so. */
const FileTags = Rpc.make("FileTags", {
  payload: tenant,
  success: Schema.Struct({ left: Schema.Boolean }),
  error: refusals,
})

/** Removes a batch of messages that are marked as deleted. `left` means that more remain. */
const ExpungeFolder = Rpc.make("ExpungeFolder", {
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
