/**
 * Saves a draft while a person types. Writes are sequential and name the version that they replace, so that two editors of
 * one draft cannot overwrite each other: the later one is prompted. What the service does not have yet is stored in the
 * browser, and a failed write is retried while the page is open.
 */
import { signal } from "@preact/signals"
import { call, callTagged, type Input, Refused } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import type { UnsavedInput } from "../client/Unsaved.ts"
import type { Attached } from "./attaching.ts"

export type Mail = NonNullable<Input<"POST /api/identities/:handle/drafts">["body"]>

export type Kept =
  /** Empty and not saved yet. */
  | { readonly is: "new" }
  | { readonly is: "changed" | "saving" }
  | { readonly is: "saved"; readonly at: string }
  /** Changed, sent or deleted elsewhere. */
  | { readonly is: "overtaken" }
  | { readonly is: "failed"; readonly failure: Error }

interface Draft {
  readonly id: string
  readonly tag: string | undefined
  readonly at: string
}

interface Start extends Draft {
  /** The content that the service has; undefined if it is not known. */
  readonly mail: Mail | undefined
}

/** The content of a composer in the browser's storage, with the version of the draft that it replaces. */
export interface UnsavedDraft {
  readonly mail: Mail
  readonly draft: Draft | undefined
  /** Names of attachments that are too large to be stored in the browser. */
  readonly missing: ReadonlyArray<string>
}

/** The entry's name in the browser's storage. `query` is that of the composer's address: a draft, or what is answered. */
export const unsavedName = (handle: string, query: URLSearchParams) => `compose:${handle}:${queryOf(query)}`

const queryOf = (query: URLSearchParams) => {
  const name = ["draft", "reply", "forward", "to"].find((name) => query.get(name) !== null)
  return name === undefined ? "" : `${name}=${query.get(name)}`
}

/** Maximum size of attachments, in characters of base64, that are stored in the browser. */
const storedAtMost = 1_000_000
/** Delays in milliseconds before a failed write is retried. */
const retryMillis = [2_000, 5_000, 15_000]

/** Writes of composers that were closed. */
const closing = new Set<Promise<void>>()
const closingMillis = 3_000

/** Waits for the last writes of closed composers, so that a composer does not restore what is being saved. */
export const closed = () =>
  Promise.race([Promise.all(closing), new Promise((resolve) => setTimeout(resolve, closingMillis))])

/** Drafts above this number of characters are uploaded with their progress. */
const largeFrom = 200_000
/** Delay in milliseconds between the last change and saving; longer for large drafts. */
const restMillis = (content: string) => (content.length < largeFrom ? 1_200 : 8_000)

const byPath = ["/api/identities/:handle/drafts"]

export const keepDraft = (
  handle: string,
  start: Start | undefined,
  onMade: (id: string) => void,
  store: UnsavedInput<UnsavedDraft>,
) => {
  const state = signal<Kept>(start?.mail === undefined ? { is: "new" } : { is: "saved", at: start.at })
  let id = start?.id
  let tag = start?.tag
  let kept = start?.mail === undefined ? undefined : JSON.stringify(start.mail)
  let failures = 0
  let isLeft = false
  let wanted = start?.mail
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: Promise<void> | undefined
  let ended = false
  /** The share of a large draft that was sent, while it is being sent. */
  const sent = signal<number | undefined>(undefined)
  let uploading = new AbortController()
  /** The attachments that the service has. */
  let attached = start?.mail?.attachments
  /** The creation in flight. A retry must repeat exactly this request. */
  let making: { readonly key: string; readonly mail: Mail } | undefined

  const write = async (mail: Mail) => {
    uploading = new AbortController()
    const manner =
      JSON.stringify(mail).length < largeFrom
        ? {}
        : { signal: uploading.signal, onSent: (share: number) => (sent.value = share) }
    if (id === undefined) {
      making ??= { key: crypto.randomUUID(), mail }
      const first = making
      const { answer, tag: made } = await callTagged(
        "POST /api/identities/:handle/drafts",
        { params: { handle }, body: first.mail },
        { ...manner, key: first.key },
      )
      making = undefined
      attached = first.mail.attachments
      ;[id, tag, kept] = [answer.id, made, JSON.stringify(first.mail)]
      store.rename(unsavedName(handle, new URLSearchParams({ draft: answer.id })))
      onMade(answer.id)
    } else {
      const { tag: made } = await callTagged(
        "PUT /api/identities/:handle/drafts/:id",
        { params: { handle, id }, body: mail },
        tag === undefined ? manner : { ...manner, ifMatch: tag },
      )
      attached = mail.attachments
      ;[tag, kept] = [made, JSON.stringify(mail)]
    }
  }

  /** Stores the content in the browser, without attachments if they do not fit. */
  const remember = (mail: Mail) => {
    const draft = id === undefined ? undefined : { id, tag, at: new Date().toISOString() }
    const attachments: ReadonlyArray<Attached> = mail.attachments ?? []
    const size = attachments.reduce((sum, { content_base64 }) => sum + content_base64.length, 0)
    if (size <= storedAtMost && store.write({ mail, draft, missing: [] })) return
    store.write({ mail: { ...mail, attachments: [] }, draft, missing: attachments.map(({ filename }) => filename) })
  }

  const isKept = () => wanted === undefined || JSON.stringify(wanted) === kept

  const save = async () => {
    clearTimeout(timer)
    await running
    if (ended || isKept() || state.peek().is === "overtaken") return
    const work = async () => {
      state.value = { is: "saving" }
      try {
        while (!isKept()) await write(wanted!)
        failures = 0
        store.remove()
        state.value = { is: "saved", at: new Date().toISOString() }
        void outdated(byPath, handle)
      } catch (cause) {
        if (cause instanceof Refused && cause.problem.status < 500) making = undefined
        if (uploading.signal.aborted) {
          // The service has not received the whole request.
          making = undefined
          state.value = isKept() ? { is: "saved", at: new Date().toISOString() } : { is: "changed" }
          return
        }
        const isOvertaken = cause instanceof Refused && [404, 412].includes(cause.problem.status)
        const isTransient = !(cause instanceof Refused) || cause.problem.status >= 500
        if (isTransient && !isLeft) timer = setTimeout(() => void save(), retryMillis[Math.min(failures++, 2)])
        state.value = isOvertaken
          ? { is: "overtaken" }
          : { is: "failed", failure: cause instanceof Error ? cause : new Error(String(cause)) }
      } finally {
        sent.value = undefined
      }
    }
    running = work()
    await running
    running = undefined
  }

  /** Stops saving, and deletes what the browser has stored. */
  const end = () => {
    ended = true
    clearTimeout(timer)
    store.remove()
  }

  return {
    state,
    sent,
    /** Stops an upload, and returns the attachments that the service has. */
    cancel: () => {
      uploading.abort()
      return attached ?? []
    },
    isKept: () => ended || isKept(),
    end,
    /** Sets the current content, which is saved after a delay. */
    change: (mail: Mail) => {
      wanted = mail
      if (ended) return
      if (isKept()) return store.remove()
      remember(mail)
      if (state.peek().is !== "overtaken") state.value = { is: "changed" }
      clearTimeout(timer)
      // A message is a draft from its first change on.
      timer = setTimeout(
        () => void save(),
        id === undefined && making === undefined ? 0 : restMillis(JSON.stringify(mail)),
      )
    },
    save,
    /** Overwrites the stored draft with the current content. */
    overrule: async () => {
      const there =
        id === undefined
          ? undefined
          : await callTagged("GET /api/identities/:handle/drafts/:id", { params: { handle, id } }).catch(
              (cause: unknown) => {
                if (cause instanceof Refused && cause.problem.status === 404) return undefined
                throw cause
              },
            )
      ;[id, tag, kept] = [there?.answer.id, there?.tag, undefined]
      state.value = { is: "changed" }
      await save()
    },
    /** Saves and sends the draft by its id, so that a repeated call sends it once. */
    send: async (mail: Mail, key: string) => {
      wanted = mail
      await save()
      const now = state.peek()
      // The limit of drafts is reached: send the message without a draft.
      if (
        id === undefined &&
        now.is === "failed" &&
        now.failure instanceof Refused &&
        now.failure.problem.status === 409
      ) {
        const sent = await call(
          "POST /api/identities/:handle/messages/send",
          { params: { handle }, body: mail },
          { key },
        )
        end()
        return sent
      }
      if (now.is === "failed") throw now.failure
      if (now.is === "overtaken" || id === undefined) return undefined
      const sent = await call("POST /api/identities/:handle/drafts/:id/send", { params: { handle, id } }, { key })
      end()
      return sent
    },
    remove: async () => {
      end()
      await running
      if (id !== undefined) await call("DELETE /api/identities/:handle/drafts/:id", { params: { handle, id } })
      await outdated(byPath, handle)
    },
    /** Saves pending changes immediately. */
    hide: () => void save(),
    /** Saves pending changes a last time. */
    leave: () => {
      isLeft = true
      const last: Promise<void> = save().finally(() => closing.delete(last))
      closing.add(last)
    },
  }
}

export type DraftKeeper = ReturnType<typeof keepDraft>
