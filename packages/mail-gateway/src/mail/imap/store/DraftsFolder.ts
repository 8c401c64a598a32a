/**
 * Synchronizes API drafts with the IMAP Drafts folder. When a client opens the folder, pictures of new drafts are added
 * and pictures of deleted drafts are removed. A message that a client appends becomes an API draft if possible.
 */
import * as DraftRenditions from "@svc/cluster/mail/folders/DraftRenditions"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { orUnavailable, Reads } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Zoned } from "../protocol/Dates.ts"
import type { FolderFlagChange } from "@svc/domain/mail/FolderProtocol"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { NewMail } from "@svc/domain/mail/Sending"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { ComposingThread } from "../../composing/ComposingThread.ts"
import type { Folder, FlagChange, StoreError } from "../session/Store.ts"
import type { AppendedMessage } from "./AppendedMessage.ts"

/** Maximum pictures added per synchronization. */
const together = 100

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(NewMail))

/** Commands to the actor of the Mailbox. */
export interface Box {
  readonly identityId: string
  readonly address: string
  readonly append: (
    folder: string,
    mail: ReceivedMail,
    change: FolderFlagChange,
    draft?: DraftRenditions.Pictured,
  ) => Effect.Effect<{ readonly uidValidity: number; readonly uid: number }, StoreError>
  readonly hide: Effect.Effect<{ readonly left: boolean }, StoreError>
}

export const make = Effect.fnUntraced(function* (incoming: AppendedMessage) {
  const reads = yield* Reads
  const drafts = yield* Drafts
  const composing = yield* ComposingThread

  /** Updates the folder. If the Mailbox is full, the remaining drafts are added the next time. */
  const settle = Effect.fnUntraced(function* (box: Box, folder: Folder) {
    const found = yield* orUnavailable(DraftRenditions.waiting(reads, box.identityId, together))
    if (found.stale) while ((yield* box.hide).left);
    for (const draft of found.drafts) {
      const row = yield* orUnavailable(DraftRenditions.contentOf(reads, draft))
      if (row === undefined) continue
      const mail = yield* Effect.orDie(decode(row.content))
      const { address } = box
      const messageId = `<draft.${draft.id}.${draft.version}@${address.slice(address.lastIndexOf("@") + 1)}>`
      const raw = yield* Effect.mapError(
        composing.picture({ mail, from: address, at: row.updated_at, messageId }),
        () => new Unavailable({ detail: "The server is too busy.", retry_after_seconds: 5 }),
      )
      yield* box.append(
        folder.name,
        yield* incoming(address, raw, { at: row.updated_at, zone: 0 }),
        { seen: true, draft: true },
        draft,
      )
    }
  })

  return {
    settle: (box: Box, folder: Folder) =>
      folder.use === "drafts" ? Effect.catchTag(settle(box, folder), "ImapRefused", () => Effect.void) : Effect.void,

    /** Appends a message to the Drafts folder, as an API draft if possible. */
    append: Effect.fnUntraced(function* (
      box: Box,
      folder: Folder,
      raw: Buffer,
      change: FlagChange,
      at: Zoned | undefined,
    ) {
      const mail = yield* incoming(box.address, raw, at)
      const flags = { ...change, draft: true }
      const identityId = yield* drafts.ownerWithRoom(box.identityId)
      const written =
        identityId === undefined ? undefined : yield* Effect.orElseSucceed(composing.draft(raw), () => undefined)
      if (identityId === undefined || written === undefined) return yield* box.append(folder.name, mail, flags)
      const id = yield* makeUuidV7
      const placed = yield* box.append(folder.name, mail, flags, { id, version: 1 })
      // Its picture already exists, so opening the folder adds no other.
      yield* Effect.mapError(drafts.create(identityId, id, written), (error) =>
        error._tag === "unavailable"
          ? error
          : new Unavailable({ detail: "The draft could not be stored.", retry_after_seconds: 1 }),
      )
      return placed
    }),
  }
})
