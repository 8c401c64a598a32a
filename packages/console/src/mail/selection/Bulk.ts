/**
 * Changes of several messages or conversations: archive, mark and delete, each of which can be undone. A deletion is hidden at
 * once and made after some seconds, or when the page is closed, because the service cannot restore a message.
 */
import { signal } from "@preact/signals"
import { call, type Input } from "../../client/Client.ts"
import { outdated } from "../../client/Queries.ts"
import { tell } from "../../ui/Toast.tsx"
import { say } from "./texts.ts"

/** An entry of a list: a conversation (`thr_…`) or a message (`msg_…`). */
export type Id = string

/** The label of archived messages. The list of conversations leaves out those whose messages all have it. */
const archived = "archived"

type Patch = Omit<NonNullable<Input<"PATCH /api/identities/:handle/messages">["body"]>, "ids" | "threads">

/** Maximum number of entries in one request. */
const atOnce = 200

const paths = ["/api/identities/:handle/messages", "/api/identities/:handle/threads"]
const renewed = (handle: string) => outdated(paths, handle)

const named = (ids: ReadonlyArray<Id>) => ({
  ids: ids.filter((id) => id.startsWith("msg_")),
  threads: ids.filter((id) => id.startsWith("thr_")),
})

const portions = (ids: ReadonlyArray<Id>) =>
  Array.from({ length: Math.ceil(ids.length / atOnce) }, (_, n) => ids.slice(n * atOnce, (n + 1) * atOnce))

/** Repeats a request until it has changed everything, and returns the ids of the changed messages. */
const untilDone = async (
  ids: ReadonlyArray<Id>,
  request: (some: ReadonlyArray<Id>) => Promise<{ readonly changed: ReadonlyArray<Id>; readonly more: boolean }>,
): Promise<ReadonlyArray<Id>> => {
  const all: Array<Id> = []
  for (const some of portions(ids)) {
    let isMore = true
    while (isMore) {
      const { changed, more } = await request(some)
      all.push(...changed)
      isMore = more
    }
  }
  return all
}

const patch = async (handle: string, ids: ReadonlyArray<Id>, change: Patch) => {
  try {
    return await untilDone(ids, (some) =>
      call("PATCH /api/identities/:handle/messages", { params: { handle }, body: { ...named(some), ...change } }),
    )
  } finally {
    await renewed(handle)
  }
}

const failed = () => tell(say("not_changed"))

/** Changes entries, and offers to change back the messages that it changed. */
const changed = async (handle: string, ids: ReadonlyArray<Id>, change: Patch, back: Patch, text: string) => {
  try {
    const messages = await patch(handle, ids, change)
    tell(text, { text: say("undo"), run: () => void patch(handle, messages, back).catch(failed) })
  } catch {
    failed()
  }
}

export const mark = (handle: string, ids: ReadonlyArray<Id>, seen: boolean) =>
  changed(handle, ids, { seen }, { seen: !seen }, say(seen ? "marked_read" : "marked_unread"))

export const flag = (handle: string, ids: ReadonlyArray<Id>, flagged: boolean) =>
  changed(handle, ids, { flagged }, { flagged: !flagged }, say(flagged ? "marked_flagged" : "marked_plain"))

export const archive = (handle: string, ids: ReadonlyArray<Id>, isArchived: boolean) => {
  const [add, remove]: [Patch, Patch] = [{ add_labels: [archived] }, { remove_labels: [archived] }]
  return isArchived
    ? changed(handle, ids, add, remove, say("archived_done"))
    : changed(handle, ids, remove, add, say("unarchived_done"))
}

/** Time in milliseconds in which a deletion can be undone. */
const undoMillis = 8_000

/** Entries that are about to be deleted, which lists leave out. */
export const leaving = signal<ReadonlySet<Id>>(new Set())

interface Deletion {
  readonly handle: string
  readonly ids: ReadonlyArray<Id>
  timer: ReturnType<typeof setTimeout>
}
const deletions = new Set<Deletion>()

const stayed = (ids: ReadonlyArray<Id>) => {
  leaving.value = new Set([...leaving.peek()].filter((id) => !ids.includes(id)))
}

const finish = async (deletion: Deletion, isLast = false) => {
  if (!deletions.delete(deletion)) return
  const { handle, ids, timer } = deletion
  clearTimeout(timer)
  try {
    await untilDone(ids, (some) =>
      // The request outlives a page that is closed.
      call(
        "POST /api/identities/:handle/messages/remove",
        { params: { handle }, body: named(some) },
        { key: crypto.randomUUID(), keepalive: isLast },
      ),
    )
  } catch {
    failed()
  }
  await renewed(handle)
  stayed(ids)
}

if (typeof addEventListener === "function") {
  addEventListener("pagehide", () => {
    for (const deletion of deletions) void finish(deletion, true)
  })
}

export const remove = (handle: string, ids: ReadonlyArray<Id>) => {
  leaving.value = new Set([...leaving.peek(), ...ids])
  const deletion: Deletion = { handle, ids, timer: setTimeout(() => void finish(deletion), undoMillis) }
  deletions.add(deletion)
  const undo = () => {
    if (!deletions.delete(deletion)) return
    clearTimeout(deletion.timer)
    stayed(ids)
  }
  tell(say("removed_done"), { text: say("undo"), run: undo, millis: undoMillis })
}
