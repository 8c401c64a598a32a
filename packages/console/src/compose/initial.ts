/** Loads the initial content of the composer: a draft, a reply, a forwarded message, or an empty message. */
import type { Answer } from "../client/Client.ts"
import { call, callTagged, Refused } from "../client/Client.ts"
import { dateTime } from "../texts/Texts.ts"
import { answerTo, passedOnText, passingOn, peopleShown, quote, recipientsOf } from "./answering.ts"
import { type Attached, attached, attachedAtMost, filesAtMost } from "./attaching.ts"
import { unsavedInput } from "../client/Unsaved.ts"
import { closed, type Mail, type UnsavedDraft, unsavedName } from "./draft.ts"
import { say } from "./texts.ts"

type Message = Answer<"GET /api/identities/:handle/messages/:id">

export interface Beginning {
  readonly kind: "new" | "reply" | "forward" | "draft"
  readonly mail: Mail
  /** The stored draft with its entity tag. */
  readonly draft?: { readonly id: string; readonly tag: string | undefined; readonly at: string }
  /** Names of attachments that were too large or too many to forward. */
  readonly leftOut: ReadonlyArray<string>
  /** Names of attachments that were not restored with the content of an earlier visit; undefined if nothing was restored. */
  readonly missing?: ReadonlyArray<string>
}

const draftRoute = "GET /api/identities/:handle/drafts/:id"

const isSame = (one: Mail, other: Mail) =>
  [one, other]
    .map(({ to = [], cc = [], bcc = [], subject = "", text = "", html = null, attachments = [] }) =>
      JSON.stringify([to, cc, bcc, subject, text, html, attachments.map(({ filename }) => filename)]),
    )
    .every((content, _, [first]) => content === first)

/** Returns the content of an earlier visit that was not saved; it does not need the service. */
const restore = async (
  handle: string,
  unsaved: UnsavedDraft,
  query: URLSearchParams,
): Promise<Beginning | undefined> => {
  const { mail, draft, missing } = unsaved
  const kind = draft !== undefined ? "draft" : query.has("reply") ? "reply" : query.has("forward") ? "forward" : "new"
  if (draft === undefined) return { kind, mail, leftOut: [], missing }
  try {
    const { answer, tag } = await callTagged(draftRoute, { params: { handle, id: draft.id } })
    const attachments = answer.attachments ?? []
    const whole = missing.length === 0 ? mail : { ...mail, attachments }
    // The last write reached the service, and its response did not reach the browser.
    if (isSame(whole, answer)) return undefined
    const lost = missing.filter((name) => !attachments.some(({ filename }) => filename === name))
    // With the tag of the version that was edited, the service rejects the change if there is a newer one.
    return { kind, mail: whole, draft: { ...draft, tag: draft.tag ?? tag }, leftOut: [], missing: lost }
  } catch (cause) {
    if (cause instanceof Refused && cause.problem.status === 404) return { kind: "new", mail, leftOut: [], missing }
    return { kind, mail, draft, leftOut: [], missing }
  }
}

const nameOf = ({ from }: Message) => (from === null ? say("somebody") : (from.name ?? from.address))

const attachmentsOf = async (handle: string, message: Message) => {
  const taken: Array<Attached> = []
  const leftOut: Array<string> = []
  let left = attachedAtMost
  for (const { index, filename, content_type, size } of message.attachments) {
    const name = filename ?? say("nameless")
    const path = `/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/attachments/${index}`
    const response = size > left || taken.length === filesAtMost ? undefined : await fetch(path)
    if (response?.ok !== true) {
      leftOut.push(name)
      continue
    }
    left -= size
    taken.push(await attached(await response.blob(), name, content_type))
  }
  return { taken, leftOut }
}

/** `email` is the Identity's address. */
export const begin = async (handle: string, email: string, query: URLSearchParams): Promise<Beginning> => {
  await closed()
  const unsaved = unsavedInput<UnsavedDraft>(unsavedName(handle, query))
  const earlier = unsaved.restored === undefined ? undefined : await restore(handle, unsaved.restored, query)
  if (earlier !== undefined) return earlier
  const read = (id: string) => call("GET /api/identities/:handle/messages/:id", { params: { handle, id } })
  const [draft, answers, passes] = ["draft", "reply", "forward"].map((name) => query.get(name))
  if (draft != null) {
    const { answer, tag } = await callTagged(draftRoute, {
      params: { handle, id: draft },
    })
    const { id, created_at: _, updated_at, ...mail } = answer
    // A draft of an agent may leave its recipients to the message that it replies to.
    const original =
      mail.reply_to_message !== undefined && (mail.to ?? []).length === 0
        ? await read(mail.reply_to_message)
        : undefined
    return {
      kind: "draft",
      mail: {
        ...mail,
        ...(original !== undefined && {
          ...recipientsOf(original, mail.reply_all === true, email),
          ...(mail.cc !== undefined && { cc: mail.cc }),
          subject: mail.subject ?? answerTo(original.subject),
        }),
      },
      draft: { id, tag, at: updated_at },
      leftOut: [],
    }
  }
  if (answers != null) {
    const original = await read(answers)
    const attribution = say("wrote", { when: dateTime(new Date(original.received_at)), who: nameOf(original) })
    return {
      kind: "reply",
      mail: {
        ...recipientsOf(original, query.get("all") !== null, email),
        subject: answerTo(original.subject),
        text: quote(original, attribution),
        reply_to_message: original.id,
      },
      leftOut: [],
    }
  }
  if (passes != null) {
    const original = await read(passes)
    const { taken, leftOut } = await attachmentsOf(handle, original)
    const text = passedOnText(original, {
      head: say("passed_on"),
      fields: [
        [say("from"), original.from === null ? "" : peopleShown([original.from])],
        [say("date"), dateTime(new Date(original.received_at))],
        [say("subject"), original.subject],
        [say("to"), peopleShown(original.to)],
      ],
    })
    return {
      kind: "forward",
      mail: { to: [], subject: passingOn(original.subject), text, attachments: taken },
      leftOut,
    }
  }
  const to = query.get("to")
  return { kind: "new", mail: { to: to === null ? [] : [to], subject: "", text: "" }, leftOut: [] }
}
