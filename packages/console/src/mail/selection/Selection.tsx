/** The selected entries of the mail list, which the page's address names, and the actions on them by button and by key. */
import { place, query, refine } from "../../router/Router.ts"
import { Button } from "../../ui/Button.tsx"
import { useKeys } from "../../ui/Keys.ts"
import { archive, flag, type Id, leaving, mark, remove } from "./Bulk.ts"
import { say as sayOfMail } from "../texts.ts"
import { say } from "./texts.ts"

export interface Entry {
  readonly id: Id
  readonly isUnread: boolean
  /** Undefined for a conversation. */
  readonly isFlagged?: boolean
}

const separator = "."
const selected = (): ReadonlySet<Id> =>
  new Set((query.value.get("selected") ?? "").split(separator).filter((id) => id !== ""))

const select = (ids: Iterable<Id>) => refine({ selected: [...ids].join(separator) })

const toggle = (id: Id) => {
  const next = new Set(selected())
  if (!next.delete(id)) next.add(id)
  select(next)
}

/** The query that leads to an entry and back to this list, without the selection. */
export const searchOf = () => {
  const members = new URLSearchParams(place.value.search)
  members.delete("selected")
  const text = members.toString()
  return text === "" ? "" : `?${text}`
}

/** The box that selects an entry. */
export const Pick = ({ id, name }: { readonly id: Id; readonly name: string }) => (
  <input
    type="checkbox"
    class="pick"
    aria-label={say("select_one", { name })}
    checked={selected().has(id)}
    onChange={() => toggle(id)}
  />
)

/** Returns the entry of the list that has the focus. */
const focusedOf = (entries: ReadonlyArray<Entry>) => {
  const id = document.activeElement?.closest<HTMLElement>("[data-entry]")?.dataset["entry"]
  return entries.find((entry) => entry.id === id)
}

interface SelectionProps {
  readonly handle: string
  readonly entries: ReadonlyArray<Entry>
  /** The entry that is open beside the list. */
  readonly open?: string | undefined
  /** Called after the open entry was archived or deleted. */
  readonly onLeft: () => void
}

export const Selection = ({ handle, entries, open, onLeft }: SelectionProps) => {
  const chosen = entries.filter(({ id }) => selected().has(id))
  const isArchive = query.value.get("archived") !== null
  const targets = (): ReadonlyArray<Entry> => {
    if (chosen.length > 0) return chosen
    const one = focusedOf(entries) ?? entries.find(({ id }) => id === open)
    if (one !== undefined) return [one]
    // The open message may be missing from the list.
    return open === undefined ? [] : [{ id: open, isUnread: false }]
  }
  const act = (run: (ids: ReadonlyArray<Id>, found: ReadonlyArray<Entry>) => unknown, leaves = false) => {
    const found = targets()
    if (found.length === 0) return
    const ids = found.map(({ id }) => id)
    void run(ids, found)
    if (chosen.length > 0) select([])
    if (leaves && open !== undefined && ids.includes(open)) onLeft()
  }
  const doArchive = () => act((ids) => archive(handle, ids, !isArchive), true)
  const doRemove = () => act((ids) => remove(handle, ids), true)
  const doMark = () =>
    act((ids, found) =>
      mark(
        handle,
        ids,
        found.some(({ isUnread }) => isUnread),
      ),
    )
  const doFlag = () =>
    act((_, found) => {
      const messages = found.filter(({ isFlagged }) => isFlagged !== undefined)
      if (messages.length === 0) return
      const isOn = messages.some(({ isFlagged }) => isFlagged === false)
      return flag(
        handle,
        messages.map(({ id }) => id),
        isOn,
      )
    })
  useKeys({
    e: doArchive,
    "#": doRemove,
    u: doMark,
    // Without a selection, the letter is for the open message.
    ...(open === undefined || chosen.length > 0 ? { s: doFlag } : {}),
    x: () => {
      const one = focusedOf(entries)
      if (one !== undefined) toggle(one.id)
    },
  })
  if (chosen.length === 0) return null
  const areMessages = chosen.every(({ isFlagged }) => isFlagged !== undefined)
  return (
    <div class="bar selection" role="toolbar" aria-label={say("selection")}>
      <span class="number" role="status">
        {say("selected", { count: chosen.length })}
      </span>
      <Button small onClick={() => select(entries.map(({ id }) => id))}>
        {say("select_all")}
      </Button>
      <Button small busy={false} onClick={doMark}>
        {sayOfMail(chosen.some(({ isUnread }) => isUnread) ? "mark_read" : "mark_unread")}
      </Button>
      {areMessages ? (
        <Button small busy={false} icon="star" onClick={doFlag}>
          {sayOfMail("flag")}
        </Button>
      ) : null}
      <Button small busy={false} onClick={doArchive}>
        {say(isArchive ? "unarchive" : "archive")}
      </Button>
      <Button small busy={false} kind="danger" icon="trash" onClick={doRemove}>
        {sayOfMail("remove")}
      </Button>
      <Button small kind="plain" icon="cross" aria-label={say("select_none")} onClick={() => select([])} />
    </div>
  )
}

/** Whether entries are selected, so that letters are for them. */
export const isSelecting = () => selected().size > 0

/** Leaves out entries that are about to be deleted. */
export const staying = <E extends { readonly id: Id }>(entries: ReadonlyArray<E>): ReadonlyArray<E> =>
  leaving.value.size === 0 ? entries : entries.filter(({ id }) => !leaving.value.has(id))
