/**
 * Saves a draft while a person types. Writes are sequential and name the version that they replace, so that two editors of
 * one draft cannot overwrite each other: the later one is prompted.
 */
import { signal } from "@preact/signals"
import { call, callTagged, type Input, Refused } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"

export type Mail = NonNullable<Input<"POST /api/identities/:handle/drafts">["body"]>

export type Kept =
  /** Empty and not saved yet. */
  | { readonly is: "new" }
  | { readonly is: "changed" | "saving" }
  | { readonly is: "saved"; readonly at: string }
  /** Changed, sent or deleted elsewhere. */
  | { readonly is: "overtaken" }
  | { readonly is: "failed"; readonly failure: Error }

interface Start {
  readonly id: string
  readonly tag: string | undefined
  readonly mail: Mail
  readonly at: string
}

/** Delay in milliseconds between the last change and saving; longer for large drafts. */
const restMillis = (content: string) => (content.length < 200_000 ? 1_200 : 8_000)

const byPath = ["/api/identities/:handle/drafts"]

export const keepDraft = (handle: string, start: Start | undefined, onMade: (id: string) => void) => {
  const state = signal<Kept>(start === undefined ? { is: "new" } : { is: "saved", at: start.at })
  let id = start?.id
  let tag = start?.tag
  let kept = start === undefined ? undefined : JSON.stringify(start.mail)
  let wanted = start?.mail
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: Promise<void> | undefined
  let ended = false
  /** The creation in flight. A retry must repeat exactly this request. */
  let making: { readonly key: string; readonly mail: Mail } | undefined

  const write = async (mail: Mail) => {
    if (id === undefined) {
      making ??= { key: crypto.randomUUID(), mail }
      const first = making
      const { answer, tag: made } = await callTagged(
        "POST /api/identities/:handle/drafts",
        { params: { handle }, body: first.mail },
        { key: first.key },
      )
      making = undefined
      ;[id, tag, kept] = [answer.id, made, JSON.stringify(first.mail)]
      onMade(answer.id)
    } else {
      const { tag: made } = await callTagged(
        "PUT /api/identities/:handle/drafts/:id",
        { params: { handle, id }, body: mail },
        tag === undefined ? {} : { ifMatch: tag },
      )
      ;[tag, kept] = [made, JSON.stringify(mail)]
    }
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
        state.value = { is: "saved", at: new Date().toISOString() }
        void outdated(byPath, handle)
      } catch (cause) {
        if (cause instanceof Refused && cause.problem.status < 500) making = undefined
        const isOvertaken = cause instanceof Refused && [404, 412].includes(cause.problem.status)
        state.value = isOvertaken
          ? { is: "overtaken" }
          : { is: "failed", failure: cause instanceof Error ? cause : new Error(String(cause)) }
      }
    }
    running = work()
    await running
    running = undefined
  }

  return {
    state,
    /** Sets the current content, which is saved after a delay. */
    change: (mail: Mail) => {
      wanted = mail
      if (ended || isKept()) return
      if (state.peek().is !== "overtaken") state.value = { is: "changed" }
      clearTimeout(timer)
      timer = setTimeout(() => void save(), restMillis(JSON.stringify(mail)))
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
      )
        return await call("POST /api/identities/:handle/messages/send", { params: { handle }, body: mail }, { key })
      if (now.is === "failed") throw now.failure
      if (now.is === "overtaken" || id === undefined) return undefined
      const sent = await call("POST /api/identities/:handle/drafts/:id/send", { params: { handle, id } }, { key })
      ended = true
      return sent
    },
    remove: async () => {
      ended = true
      clearTimeout(timer)
      await running
      if (id !== undefined) await call("DELETE /api/identities/:handle/drafts/:id", { params: { handle, id } })
      await outdated(byPath, handle)
    },
    /** Saves pending changes immediately. */
    leave: () => void save(),
  }
}

export type DraftKeeper = ReturnType<typeof keepDraft>
