/** Mail that a caller's Identity receives by SMTP, its flags, and its deletion. */
import { setTimeout as sleep } from "node:timers/promises"
import { send } from "../../harness/Mail.ts"
import type { Caller, Resources } from "./Caller.ts"

const sender = "bob@example.org"

interface Known {
  id: string | undefined
  isFlagged: boolean
}

/** Sends a message until it is accepted, like a mail server. Returns the reply if it is refused for good. */
const deliver = async (caller: Caller, subject: string): Promise<number | undefined> => {
  const to = `${caller.handle}@mail.localhost`
  const id = `${subject.replaceAll(" ", "-")}@example.org`
  const raw = `From: ${sender}\r\nTo: ${to}\r\nSubject: ${subject}\r\nMessage-ID: <${id}>\r\n\r\nhello\r\n`
  while (true) {
    const reply = await send(caller.process().smtpPort, { envelope: { from: sender, to }, raw }).then(
      () => 250,
      ({ responseCode }: { readonly responseCode?: number }) => responseCode ?? 0,
    )
    if (reply === 250) return undefined
    if (reply >= 500) return reply
    caller.client.repeats++
    await sleep(100)
  }
}

export const incoming = (caller: Caller): Resources => {
  const known = new Map<string, Known>()
  const path = `${caller.own}/messages`

  const receive = async () => {
    const subject = caller.text("received")
    const refused = await deliver(caller, subject)
    if (refused !== undefined) return caller.findings.add(`SMTP answered ${refused} to "${subject}"`)
    known.set(subject, { id: undefined, isFlagged: false })
    caller.effects.events.add("email.received")
  }

  /** Finds a message by its subject. */
  const idOf = async (subject: string): Promise<string> => {
    const message = known.get(subject)!
    if (message.id === undefined) {
      const { body } = await caller.read(`${path}?query=${encodeURIComponent(`"${subject}"`)}`)
      const found = body.messages.filter((one: { readonly subject: string }) => one.subject === subject)
      caller.findings.same(
        `search of ${caller.handle}`,
        found.map(() => subject),
        [subject],
      )
      message.id = found[0]?.id
    }
    return message.id ?? "not found"
  }

  const flag = async () => {
    const subject = caller.pick(known.keys())
    if (subject === undefined) return receive()
    const at = `${path}/${await idOf(subject)}`
    const flagged = caller.draw(2) === 0
    const body = { flagged }
    const made = await caller.change({
      action: "messages.patch",
      method: "PATCH",
      path: at,
      body,
      asSeenAt: at,
      tool: ["svc_email_update", { handle: caller.handle, id: known.get(subject)!.id }],
    })
    if (made !== undefined) caller.findings.same(`flag of "${subject}"`, [String(made.body.flagged)], [String(flagged)])
    known.get(subject)!.isFlagged = flagged
  }

  const flagMany = async () => {
    const subjects = [...known.keys()].slice(0, 4)
    if (subjects.length === 0) return receive()
    const ids: Array<string> = []
    for (const subject of subjects) ids.push(await idOf(subject))
    const flagged = caller.draw(2) === 0
    const made = await caller.change({ action: "messages.patchMany", method: "PATCH", path, body: { ids, flagged } })
    // The answer lists the changed messages, also that of a repeat whose first attempt changed them.
    const changed = new Set(made?.body.changed)
    const due = ids.filter((_, at) => known.get(subjects[at]!)!.isFlagged !== flagged)
    caller.findings.same(
      `changed messages of ${caller.handle}`,
      due.filter((id) => changed.has(id)),
      due,
    )
    for (const subject of subjects) known.get(subject)!.isFlagged = flagged
  }

  const remove = async () => {
    const subject = caller.pick(known.keys())
    if (subject === undefined) return receive()
    const at = `${path}/${await idOf(subject)}`
    await caller.change({ action: "messages.remove", method: "DELETE", path: at, asSeenAt: at })
    known.delete(subject)
  }

  return {
    operations: [receive, receive, receive, flag, flagMany, remove],
    compare: async () => {
      const messages = (await caller.client.list(path, "messages")).filter(({ direction }) => direction === "inbound")
      caller.findings.same(
        `received messages of ${caller.handle}`,
        messages.map(({ subject, flagged }) => `${subject}, ${flagged}`),
        [...known].map(([subject, { isFlagged }]) => `${subject}, ${isFlagged}`),
      )
    },
  }
}
