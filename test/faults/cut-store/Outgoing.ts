/** Drafts and sent messages of a caller, approvals, and stops of its outgoing mail. */
import type { Caller, Resources } from "./Caller.ts"

const to = ["grace@example.net"]
/** Above the size at which the body of a request is limited without a credential, and messages are stored in slices. */
const largeText = "x".repeat(400_000)

export interface Outgoing extends Resources {
  /** Subjects of messages that the relay must receive once. */
  readonly sent: ReadonlySet<string>
}

export const outgoing = (caller: Caller): Outgoing => {
  const { own, handle } = caller
  const drafts = new Map<string, string>()
  const sent = new Set<string>()
  const refused = new Set<string>()

  const isSent = (subject: string) => {
    sent.add(subject)
    caller.effects.events.add("email.sent")
  }

  const draft = async () => {
    const subject = caller.text("draft")
    const body = { to, subject, text: "t" }
    const tool = ["svc_email_draft", { handle }, "write"] as const
    const made = await caller.change({ action: "sending.draft", method: "POST", path: `${own}/drafts`, body, tool })
    if (made !== undefined) drafts.set(made.body.id, subject)
  }

  /** Runs an operation on a draft, or creates one if the Identity has no draft. */
  const onDraft = (operation: (path: string, subject: string, id: string) => Promise<unknown>) => async () => {
    const id = caller.pick(drafts.keys())
    return id === undefined ? draft() : operation(`${own}/drafts/${id}`, drafts.get(id)!, id)
  }

  const replace = onDraft(async (path, _, id) => {
    const subject = caller.text("draft")
    const body = { to, subject, text: "t" }
    const tool = ["svc_draft_update", { handle, id }] as const
    await caller.change({ action: "sending.replaceDraft", method: "PUT", path, body, asSeenAt: path, tool })
    drafts.set(id, subject)
  })

  const discard = onDraft(async (path, _, id) => {
    const tool = ["svc_draft_delete", { handle, id }] as const
    await caller.change({ action: "sending.removeDraft", method: "DELETE", path, asSeenAt: path, tool })
    drafts.delete(id)
  })

  const sendDraft = onDraft(async (path, subject, id) => {
    const tool = ["svc_draft_send", { handle, id }] as const
    const change = { action: "sending.sendDraft", method: "POST", path: `${path}/send`, asSeenAt: path, tool }
    if ((await caller.change(change)) !== undefined) isSent(subject)
    drafts.delete(id)
  })

  const send = async () => {
    const subject = caller.text("sent")
    const body = { to, subject, text: caller.draw(4) === 0 ? largeText : "t" }
    const tool = ["svc_email_send", { handle }, "write"] as const
    const change = { action: "sending.send", method: "POST", path: `${own}/messages/send`, body, tool }
    if ((await caller.change(change)) !== undefined) isSent(subject)
  }

  /** Sends with the Identity's own key, which needs an approval, and decides about it. */
  const ask = async () => {
    const subject = caller.text("asked")
    const asked = await caller.change({
      action: "sending.send",
      raises: ["email.approval_requested"],
      method: "POST",
      path: `${own}/messages/send`,
      body: { to, subject, text: "t" },
      token: caller.identityKey,
    })
    if (asked === undefined) return
    const path = `${own}/approvals/${asked.body.id}`
    const { body: shown } = await caller.read(path)
    if (caller.draw(2) === 0) {
      const body = { content_sha256: shown.content_sha256 }
      const approved = {
        action: "sending.approve",
        raises: ["email.approved"],
        method: "POST",
        path: `${path}/approve`,
      }
      if ((await caller.change({ ...approved, body })) !== undefined) isSent(subject)
    } else {
      const body = { reason: "no" }
      const decision = { action: "sending.refuse", raises: ["email.approval_refused"], method: "POST" }
      if ((await caller.change({ ...decision, path: `${path}/refuse`, body })) !== undefined) refused.add(subject)
    }
  }

  const stopAndResume = async () => {
    const path = `${own}/mail`
    const change = { action: "mail_settings.switch", method: "PATCH", path, asSeenAt: path }
    await caller.change({ ...change, raises: ["mail.stopped"], body: { outgoing: "stopped" } })
    await caller.change({ ...change, raises: ["mail.started"], body: { outgoing: "active" } })
  }

  return {
    sent,
    operations: [
      draft,
      draft,
      replace,
      discard,
      discard,
      sendDraft,
      send,
      send,
      send,
      stopAndResume,
      caller.isApproved ? ask : send,
    ],
    compare: async () => {
      const found = await caller.client.list(`${own}/drafts`, "drafts")
      caller.findings.same(
        `drafts of ${caller.handle}`,
        found.map(({ id, subject }) => `${id} ${subject}`),
        [...drafts].map(([id, subject]) => `${id} ${subject}`),
      )
      const messages = await caller.client.list(`${own}/messages`, "messages")
      caller.findings.same(
        `sent messages of ${caller.handle}`,
        messages
          .filter(({ direction, is_draft }) => direction === "outbound" && !is_draft)
          .map(({ subject }) => subject),
        [...sent, ...refused],
      )
    },
  }
}
