/**
 * Input that the service does not have yet, in the storage of this browser and separate for each account. It is deleted when
 * the service has it, at sign-out, and after 30 days. Callers never pass secrets.
 */
import { texts } from "../texts/Texts.ts"

const say = texts({
  sign_out: [
    "Messages or changes that are not saved will be deleted from this browser. Sign out anyway?",
    "Nachrichten oder Änderungen, die nicht gespeichert sind, werden aus diesem Browser gelöscht. Trotzdem abmelden?",
    "Les messages ou modifications non enregistrés seront supprimés de ce navigateur. Se déconnecter quand même ?",
  ],
})

interface Entry<V> {
  readonly at: number
  /** The editor that wrote the entry, so that two tabs do not overwrite each other's input. */
  readonly editor: string
  readonly value: V
}

const prefix = "svc-unsaved:"
const storedMillis = 30 * 86_400_000
let account: string | undefined

const read = <V>(key: string): Entry<V> | undefined => {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? "null") as Entry<V> | null) ?? undefined
  } catch {
    return undefined
  }
}

const keysWith = (start: string): ReadonlyArray<string> => {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(start))
  } catch {
    // Storage is not available.
    return []
  }
}

const keyOf = (name: string) => `${prefix}${account}:${name}`

/** Stores input for an account from now on, or for none after sign-out. Deletes expired entries. */
export const storeUnsavedFor = (next: string | undefined) => {
  if (next === account) return
  account = next
  for (const key of keysWith(prefix)) if (Date.now() - (read(key)?.at ?? 0) > storedMillis) localStorage.removeItem(key)
}

export const deleteAllUnsaved = () => {
  for (const key of keysWith(prefix)) localStorage.removeItem(key)
}

/** Asks before sign-out deletes input; returns whether to continue. */
export const maySignOut = () => keysWith(keyOf("")).length === 0 || confirm(say("sign_out"))

/** Returns the entries whose names begin with a text, by the rest of their names. */
export const unsavedWith = <V>(start: string): ReadonlyArray<readonly [string, V]> =>
  keysWith(keyOf(start)).flatMap((key) => {
    const entry = read<V>(key)
    return entry === undefined ? [] : [[key.slice(keyOf(start).length).replace(/#.*$/, ""), entry.value] as const]
  })

/**
 * Returns the stored input of an editor by its name, and functions that store and delete it. If another tab edits under the
 * same name, this editor stores its input beside the other one's.
 */
export const unsavedInput = <V>(name: string) => {
  const editor = crypto.randomUUID()
  let key = keyOf(name)
  const stored = [key, ...keysWith(`${key}#`)].find((one) => read(one) !== undefined)
  const restored = stored === undefined ? undefined : read<V>(stored)?.value
  const write = (value: V): boolean => {
    if (account === undefined) return false
    const other = read(key)
    if (other !== undefined && other.editor !== editor) key = `${key.replace(/#.*$/, "")}#${crypto.randomUUID()}`
    try {
      localStorage.setItem(key, JSON.stringify({ at: Date.now(), editor, value } satisfies Entry<V>))
      return true
    } catch {
      return false
    }
  }
  const remove = () => {
    if (read(key)?.editor === editor) localStorage.removeItem(key)
  }
  return {
    restored,
    /** Makes the restored input this editor's. */
    adopt: () => {
      if (stored === undefined || restored === undefined) return
      localStorage.removeItem(stored)
      write(restored)
    },
    write,
    remove,
    /** Stores further input under another name. */
    rename: (next: string) => {
      const entry = read<V>(key)
      remove()
      key = keyOf(next)
      if (entry?.editor === editor) write(entry.value)
    },
  }
}

export type UnsavedInput<V> = ReturnType<typeof unsavedInput<V>>
