/** Loads the initial content of the composer: a draft, a reply, a forwarded message, or an empty message. */
import type { Answer } from "../client/Client.ts"
import { call, callTagged } from "../client/Client.ts"
import { dateTime } from "../texts/Texts.ts"
import { answerTo, passedOnText, passingOn, peopleShown, quote, recipientsOf } from "./answering.ts"
import { type Attached, attached, attachedAtMost } from "./attaching.ts"
import type { Mail } from "./draft.ts"
import { say } from "./texts.ts"

type Message = Answer<"GET /api/identities/:handle/messages/:id">

export interface Beginning {
  readonly kind: "new" | "reply" | "forward" | "draft"
  readonly mail: Mail
  /** The stored draft with its entity tag. */
  readonly draft?: { readonly id: string; readonly tag: string | undefined; readonly at: string }
  /** Names of attachments that were too large to forward. */
  readonly leftOut: ReadonlyArray<string>
}

const nameOf = ({ from }: Message) => (from === null ? say("somebody") : (from.name ?? from.address))

const attachmentsOf = async (handle: string, message: Message) => {
  const taken: Array<Attached> = []
  const leftOut: Array<string> = []
  let left = attachedAtMost
  for (const { index, filename, content_type, size } of message.attachments.slice(0, 50)) {
    const name = filename ?? say("nameless")
    const path = `/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/attachments/${index}`
    const response = size > left ? undefined : await fetch(path)
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
  const read = (id: string) => call("GET /api/identities/:handle/messages/:id", { params: { handle, id } })
  const [draft, answers, passes] = ["draft", "reply", "forward"].map((name) => query.get(name))
  if (draft != null) {
    const { answer, tag } = await callTagged("GET /api/identities/:handle/drafts/:id", {
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
