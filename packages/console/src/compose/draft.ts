/**
 * A draft that is kept while somebody writes. One change is written at a time, and each names the version it comes after,
 * so that two who write the same draft do not undo one another: who comes second is asked.
 */
import { signal } from "@preact/signals"
import { call, callTagged, type Input, Refused } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"

export type Mail = NonNullable<Input<"POST /api/identities/:handle/drafts">["body"]>

export type Kept =
  /** Nothing is kept yet, and nothing is there to be. */
  | { readonly is: "new" }
  | { readonly is: "changed" | "saving" }
  | { readonly is: "saved"; readonly at: string }
  /** Somebody else changed it, sent it or deleted it. */
  | { readonly is: "overtaken" }
  | { readonly is: "failed"; readonly failure: Error }

interface Start {
  readonly id: string
  readonly tag: string | undefined
  readonly mail: Mail
  readonly at: string
}

/** Milliseconds of rest after which what was written is kept; what is heavy is sent less often. */
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
  /** What was given to be made, until it is known to have been: its repetition is the same act. */
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
    /** What is written now; it is kept after a rest. */
    change: (mail: Mail) => {
      wanted = mail
      if (ended || isKept()) return
      if (state.peek().is !== "overtaken") state.value = { is: "changed" }
      clearTimeout(timer)
      timer = setTimeout(() => void save(), restMillis(JSON.stringify(mail)))
    },
    save,
    /** Mine is to be the draft, whatever became of the other. */
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
    /** Sends what is written. It is the draft that is sent, by its id: to send it twice sends it once. */
    send: async (mail: Mail, key: string) => {
      wanted = mail
      await save()
      const now = state.peek()
      // No room for one more draft: it goes as it is.
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
    /** The page is left: what is not kept yet is, at once. */
    leave: () => void save(),
  }
}

export type DraftKeeper = ReturnType<typeof keepDraft>
