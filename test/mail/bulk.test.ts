/** Changes of several messages or conversations by one request. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const mailbox = async () => {
  const { handle, secrets } = await makeIdentity(service.base, session)
  const token = secrets.identity_key as string
  const api = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    call(service.base, method, `/api/identities/${handle}/${path}`, {
      token,
      headers,
      ...(body === undefined ? {} : { body }),
    })
  const arrive = async (subject: string, of?: string) => {
    const messageId = `<${subject}@example.org>`
    await send(service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: of === undefined ? subject : `Re: ${of}`,
      text: subject,
      messageId,
      ...(of === undefined ? {} : { inReplyTo: `<${of}@example.org>`, references: [`<${of}@example.org>`] }),
    })
    const { body } = await eventually(
      () => api("GET", "messages"),
      ({ body }) => body.messages[0]?.snippet === subject,
    )
    return body.messages[0] as { readonly id: string; readonly thread_id: string }
  }
  const list = async () => (await api("GET", "messages")).body.messages
  return { api, arrive, list }
}

describe("A change of several messages", () => {
  it("applies to messages and to all messages of conversations, and counts what it changed", async () => {
    const { api, arrive, list } = await mailbox()
    const plan = await arrive("plan")
    const answer = await arrive("answer", "plan")
    const other = await arrive("other")
    const last = await arrive("last")
    const change = { threads: [plan.thread_id], ids: [other.id], seen: true, add_labels: ["Done"] }
    expect((await api("PATCH", "messages", change)).body).toEqual({
      changed: [other.id, answer.id, plan.id],
      more: false,
    })
    expect((await api("PATCH", "messages", change)).body).toEqual({ changed: [], more: false })
    const after = await list()
    expect(after.map(({ seen, labels }: any) => [seen, ...labels])).toEqual([
      [false],
      [true, "done"],
      [true, "done"],
      [true, "done"],
    ])
    expect(
      (await api("PATCH", "messages", { ids: [last.id], flagged: true, remove_labels: ["done"] })).body.changed,
    ).toEqual([last.id])
    expect(
      (await api("POST", "messages/remove", { threads: [plan.thread_id], ids: [last.id] })).body.changed.toSorted(),
    ).toEqual([plan.id, answer.id, last.id].toSorted())
    expect((await list()).map(({ id }: any) => id)).toEqual([other.id])
    expect((await api("POST", "messages/remove", {})).body).toEqual({ changed: [], more: false })
  })

  it("of another Identity's messages changes nothing", async () => {
    const [ada, bob] = [await mailbox(), await mailbox()]
    const theirs = await bob.arrive("private")
    const named = { ids: [theirs.id], threads: [theirs.thread_id] }
    expect((await ada.api("PATCH", "messages", { ...named, seen: true })).body.changed).toEqual([])
    expect((await ada.api("POST", "messages/remove", named)).body.changed).toEqual([])
    expect((await bob.list()).map(({ seen }: any) => seen)).toEqual([false])
  })

  it("is refused if it names a version, which a list does not have", async () => {
    const { api, arrive, list } = await mailbox()
    const { id } = await arrive("plan")
    const change = (etag: string) => api("PATCH", "messages", { ids: [id], flagged: true }, { "if-match": etag })
    expect([(await change('"1"')).status, (await list())[0].flagged]).toEqual([412, false])
    expect((await change("*")).status).toBe(200)
  })

  it("archives conversations until a new message arrives", async () => {
    const { api, arrive } = await mailbox()
    const plan = await arrive("plan")
    const other = await arrive("other")
    const threads = async (archived: string) =>
      (await api("GET", `threads?archived=${archived}`)).body.threads.map(({ id }: any) => id)
    await api("PATCH", "messages", { threads: [plan.thread_id], add_labels: ["archived"] })
    expect(await threads("true")).toEqual([plan.thread_id])
    expect(await threads("false")).toEqual([other.thread_id])
    expect((await api("GET", "threads")).body.threads.length).toBe(2)
    await arrive("answer", "plan")
    expect(await threads("true")).toEqual([])
    expect(await threads("false")).toEqual([plan.thread_id, other.thread_id])
  })
})
