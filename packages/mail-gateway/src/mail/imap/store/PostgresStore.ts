/**
 * The IMAP store in PostgreSQL: reads are database queries, and each change is a command to the Identity's actor. The
 * process's change feed notifies sessions.
 */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Identities } from "@svc/cluster/actor/Identities"
import { carriedAtMost } from "@svc/cluster/mail/MessageContent"
import * as TagFolders from "@svc/cluster/mail/folders/TagFolders"
import { orUnavailable, Reads, Writes } from "@svc/cluster/store/Database"
import { Timing as Cluster } from "@svc/cluster/Timing"
import type { Initiator } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { FolderRefused } from "@svc/domain/mail/FolderProtocol"
import { fold } from "@svc/domain/mail/SearchText"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Array as Arr, Clock, Effect, Semaphore, Stream } from "effect"
import type { Judging } from "../../judging/VerdictPool.ts"
import { type SearchKey, some } from "../protocol/SearchKeys.ts"
import * as Sets from "../protocol/Sets.ts"
import {
  type Folder,
  type Marked,
  Refused,
  type Store,
  type StoreError,
  type Stored,
  type Wanted,
} from "../session/Store.ts"
import * as Bodies from "./Bodies.ts"
import * as Copying from "./Copying.ts"
import * as DraftsFolder from "./DraftsFolder.ts"
import * as RecentFlag from "./RecentFlag.ts"
import * as FolderFlagCache from "./FolderFlagCache.ts"
import * as FolderReads from "./FolderReads.ts"
import * as AppendedMessage from "./AppendedMessage.ts"
import { hasStructure, StoredMessage, DetailedMessage, type MessageRow } from "./Rows.ts"
import * as SearchStatement from "./SearchStatement.ts"
import * as Sorting from "./Sorting.ts"

/** Maximum large messages stored concurrently. */
const largeAtOnce = 4

/** The Mailbox and the credential of a session. */
interface Account {
  readonly identityId: string
  readonly orgId: string
  readonly canonical: string
  readonly address: string
  readonly by: Initiator
}

const refusals: Readonly<Record<FolderRefused["reason"], readonly [Refused["code"], string]>> = {
  missing: ["NONEXISTENT", "The mailbox does not exist."],
  exists: ["ALREADYEXISTS", "The mailbox already exists."],
  taken: ["USEATTR", "Another mailbox has this use."],
  too_many: ["LIMIT", "The limit of mailboxes is reached."],
  inbox: ["CANNOT", "This mailbox cannot be deleted."],
  full: ["OVERQUOTA", "The Mailbox is full."],
  too_many_labels: ["LIMIT", "The message has too many keywords."],
}

/** Maps errors of the actor to errors of the session. */
const storeErrors = <A, E extends { readonly _tag: string }>(
  request: Effect.Effect<A, E>,
  missing: Refused["code"] = "NONEXISTENT",
): Effect.Effect<A, StoreError> =>
  request.pipe(
    Effect.mapError((error) => {
      if (!(error instanceof FolderRefused)) {
        return error instanceof Unavailable
          ? error
          : new Unavailable({ detail: "The Mailbox is not available.", retry_after_seconds: 1 })
      }
      const [code, message] = refusals[error.reason]
      return new Refused({ code: error.reason === "missing" ? missing : code, message })
    }),
  )

/** Selects the messages changed after `since`. */
const known =
  (since = 0) =>
  (messages: ReadonlyArray<Marked>) =>
    Stream.fromArray(since === 0 ? messages : messages.filter(({ modseq }) => modseq > since))

const isKept = (message: Stored): message is StoredMessage => message instanceof StoredMessage

const daysIn = (key: SearchKey) => {
  const days: Array<Extract<SearchKey, { readonly _tag: "Day" }>> = []
  some(key, (one) => {
    if (one._tag === "Day" && one.of === "sent") days.push(one)
    return false
  })
  return days
}

/** Returns the folded texts that are searched in bodies. */
const bodiesIn = (key: SearchKey) => {
  const texts: Array<string> = []
  some(key, (one) => {
    if (one._tag === "Text" && one.in === "body") texts.push(fold(one.text))
    return false
  })
  return texts
}

export const make = Effect.fnUntraced(function* ({
  judging,
  host,
  mailboxBytes,
}: {
  readonly judging: Judging
  readonly host: string
  readonly mailboxBytes: number
}) {
  const reads = yield* Reads
  const writes = yield* Writes
  const actors = yield* Identities
  const feed = yield* ChangeFeed
  const bodies = yield* Bodies.make(judging, host)
  const sorting = Sorting.make(reads)
  const candidates = SearchStatement.candidates(reads)
  const incoming = yield* AppendedMessage.make(judging, host)
  const drafts = yield* DraftsFolder.make(incoming)
  const folderMarks = FolderFlagCache.make()
  // Large messages are in memory while they are stored, so only a few at a time.
  const large = yield* Semaphore.make(largeAtOnce)

  const storeOf = (account: Account): Store => {
    const { identityId, orgId: org_id } = account
    const sql = FolderReads.make(reads, identityId)
    const actor = actors.of(account.canonical)
    const by = onBehalfOf(account.by)
    const handle = account.address.split("@", 1)[0]!
    /** Notifies open pages after a change of a folder. */
    const notified = (use: Folder["use"]) =>
      Effect.sync(() => feed.changed(org_id, { resource: use === "drafts" ? "sending" : "messages", handle }))

    const box: DraftsFolder.Box = {
      identityId,
      address: account.address,
      append: (folder, mail, change, draft) =>
        Effect.map(
          storeErrors(ask(actor.AppendMail({ org_id, folder, mail, change, draft }, by), Cluster.askSmtp), "TRYCREATE"),
          ({ uid_validity, uid }) => ({ uidValidity: uid_validity, uid }),
        ),
      hide: storeErrors(ask(actor.HideDrafts({ org_id }, by))),
    }
    /** Updates the pictures of drafts and the tag folders before a read. */
    const settled = <A>(folder: Folder, read: Effect.Effect<A, StoreError>) =>
      folder.use === "drafts"
        ? Effect.andThen(drafts.settle(box, folder), read)
        : folder.name.startsWith("Tags/")
          ? Effect.andThen(filed, read)
          : read
    /** Files new messages into tag folders if the Mailbox uses them. */
    const filed: Effect.Effect<void, StoreError> = Effect.gen(function* () {
      if (!(yield* orUnavailable(TagFolders.isWaiting(reads, identityId)))) return
      while ((yield* storeErrors(ask(actor.FileTags({ org_id }, by)))).left);
    })

    /** Returns the flags of all messages, from the cache if possible. */
    const marksOf = (folder: Folder) =>
      folderMarks.of(
        folder,
        Effect.map(Stream.runCollect(sql.marks(folder, [[1, Sets.highest]], {})), (pages) => ({
          modseq: pages[0]?.counter ?? 1,
          messages: pages.flatMap((page) => page.messages),
        })),
        (since) => orUnavailable(sql.changes(folder, since)),
      )
    const made = (row: MessageRow) =>
      Effect.map(bodies.structure(new StoredMessage(row)), (made) => new DetailedMessage(row, made))

    const messages = (folder: Folder, uids: Sets.Ranges, wanted: Wanted | undefined, structure: boolean) =>
      uids.length === 0 ? Stream.empty : sql.messages(folder, uids, wanted ?? {}, structure)

    const store: Store = {
      folders: Effect.andThen(filed, orUnavailable(sql.folders)),
      status: (folder) => settled(folder, orUnavailable(sql.status(folder))),
      open: (folder) => settled(folder, orUnavailable(sql.open(folder))),
      claim: (folder, upTo) => RecentFlag.claim(writes, folder, upTo),
      changes: (folder, since) => settled(folder, orUnavailable(sql.changes(folder, since))),
      marked: (folder, uids, wanted = {}) => {
        if (uids.length === 0) return Stream.empty
        if (wanted.whole === true) return Stream.unwrap(Effect.map(marksOf(folder), known(wanted.since)))
        return Stream.flatMap(sql.marks(folder, uids, wanted), (page) => Stream.fromArray(page.messages))
      },
      stored: (folder, uids, wanted) =>
        Stream.mapArray(
          messages(folder, uids, wanted, false),
          Arr.map((row) => new StoredMessage(row)),
        ),
      detailed: (folder, uids, wanted) =>
        Stream.mapArrayEffect(messages(folder, uids, wanted, true), (page) =>
          page.every(hasStructure)
            ? Effect.succeed(Arr.map(page, (row) => new DetailedMessage(row)))
            : // Overlaps parsing and storing when many structures are missing.
              Effect.forEach(
                page,
                (row) => (hasStructure(row) ? Effect.succeed(new DetailedMessage(row)) : made(row)),
                {
                  concurrency: 8,
                },
              ),
        ),
      bytes: (message, from, to) => (isKept(message) && to > from ? bodies.bytes(message, from, to) : Stream.empty),

      search: Effect.fnUntraced(function* (folder, key, numbers) {
        const days = daysIn(key)
        const sent = days.length === 0 ? undefined : yield* sorting.sent(folder, days)
        const mayHave = yield* orUnavailable(candidates(identityId, bodiesIn(key)))
        const condition = SearchStatement.condition(reads, key, {
          numbers,
          sent: (day) => sent?.get(day) ?? [],
          now: new Date(yield* Clock.currentTimeMillis),
          identityId,
          mayHave,
        })
        const content = some(key, (one) => SearchStatement.needsContent(one, { mayHave }))
        const rows = yield* orUnavailable(
          reads<{ uid: number; modseq: number }>`
            select p.uid, greatest(m.modseq, p.modseq)::float8 as modseq
            from placed p join message m on m.id = p.message_id
            ${content ? reads`join message_content c on c.message_id = m.id` : reads``}
            where p.folder_id = ${folder.id}::uuid and (${condition}) order by p.uid`,
        )
        return {
          uids: rows.map(({ uid }) => uid),
          modseqs: rows.map(({ modseq }) => modseq),
        }
      }),
      sorted: (folder, uids, keys) => sorting.sorted(folder, uids, keys),
      threadable: (folder, uids) => sorting.threadable(folder, uids),

      change: Effect.fnUntraced(function* (folder, uids, change, unchangedSince) {
        const modified: Array<number> = []
        for (const portion of Copying.portions(uids)) {
          const done = yield* storeErrors(
            ask(
              actor.ChangeFolderFlags(
                { org_id, folder_id: folder.id, uids: portion, change, unchanged_since: unchangedSince },
                by,
              ),
            ),
          )
          modified.push(...done.modified)
        }
        yield* notified(folder.use)
        return modified
      }),

      append: Effect.fnUntraced(function* (folder, { size, read }, change, at) {
        const { folders } = yield* orUnavailable(sql.folders)
        const place = folders.find(({ name }) => name === folder)
        if (place === undefined) {
          return yield* new Refused({ code: "TRYCREATE", message: "The mailbox does not exist." })
        }
        const appended = Effect.gen(function* () {
          const raw = yield* read
          if (place.use === "drafts") return yield* drafts.append(box, place, raw, change, at)
          return yield* box.append(folder, yield* incoming(account.address, raw, at), change)
        })
        const stored = yield* size > carriedAtMost ? large.withPermits(1)(appended) : appended
        yield* notified(place.use)
        return stored
      }),

      copy: (folder, uids, to, move) =>
        Copying.copy(
          Effect.fnUntraced(function* (part, whole) {
            // A retry after a crash is the same command and is not repeated.
            const once = onBehalfOf(account.by, yield* makeUuidV7)
            const request = { org_id, folder_id: folder.id, uids: part, to, move, whole }
            return yield* storeErrors(ask(actor.CopyMessages(request, once), Cluster.askSmtp), "TRYCREATE")
          }),
          uids,
          move,
        ).pipe(Effect.tap(notified(folder.use))),

      expunge: Effect.fnUntraced(function* (folder, uids) {
        const wanted = uids === undefined ? [null] : Copying.portions(uids)
        for (const portion of wanted) {
          while (
            (yield* storeErrors(ask(actor.ExpungeFolder({ org_id, folder_id: folder.id, uids: portion }, by)))).left
          );
        }
        yield* notified(folder.use)
      }),

      create: (name, use) => storeErrors(ask(actor.CreateFolder({ org_id, name, use }, by))),
      remove: (name) => storeErrors(ask(actor.DeleteFolder({ org_id, name }, by), Cluster.askSmtp)),
      rename: (from, to) => storeErrors(ask(actor.RenameFolder({ org_id, from, to }, by))),
      subscribe: (name, subscribed) => storeErrors(ask(actor.SubscribeFolder({ org_id, name, subscribed }, by))),
      quota: Effect.map(
        orUnavailable(
          reads<{
            used: number
          }>`select bytes_used::float8 as used from mailbox where identity_id = ${identityId}::uuid`,
        ),
        ([row]) => ({ used: row?.used ?? 0, limit: mailboxBytes }),
      ),
      watch: (notify) => feed.on(identityId, notify),
    }
    return store
  }

  /** Stores are stateless, so sessions with the same Mailbox and credential share one. */
  const open = new Map<string, { readonly store: Store; sessions: number }>()
  const shared = (account: Account) => {
    const name = JSON.stringify(account)
    return Effect.acquireRelease(
      Effect.sync(() => {
        const known = open.get(name) ?? { store: storeOf(account), sessions: 0 }
        known.sessions++
        open.set(name, known)
        return known.store
      }),
      () =>
        Effect.sync(() => {
          const known = open.get(name)
          if (known !== undefined && --known.sessions === 0) open.delete(name)
        }),
    )
  }

  /** Returns the store of an account until the scope closes. */
  return ({ identityId, orgId, canonical, address, by }: Account) =>
    shared({ identityId, orgId, canonical, address, by })
})
