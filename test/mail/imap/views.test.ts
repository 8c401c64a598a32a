/**
 * Several clients and the API on one Mailbox concurrently: every session sees valid updates, and all agree in the end.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { startService, type OwnService } from "../../harness/Service.ts"
import { Views } from "./Views.ts"

let service: OwnService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}

const flags = ["\\Seen", "\\Flagged", "\\Answered", "\\Deleted", "\\Draft", "work", "$Forwarded"]

it("concurrent sessions see only valid updates and the same final view", async () => {
  const token = (await signUp(service.base)).session
  const { handle, secrets } = await makeIdentity(service.base, token)
  const sessions = await Promise.all(
    Array.from({ length: 5 }, async (_, n) => {
      const client = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
      const view = new Views()
      const next = random(100 + n)
      const runCommand = async (command: string, ...literals: ReadonlyArray<string>) => {
        const reply = await client.say(command, ...literals)
        const byNumber = /^(FETCH|STORE|SEARCH) /.test(command)
        for (const line of reply.untagged) view.hear(line, byNumber)
        return reply
      }
      if (n > 2) await client.say("ENABLE CONDSTORE")
      await runCommand("SELECT INBOX")
      return { client, view, next, runCommand }
    }),
  )

  const turn = async ({ view, next, runCommand }: (typeof sessions)[number]) => {
    const pick = next()
    const count = view.uids.length
    const number = () => 1 + Math.floor(next() * count)
    const some = () => `${number()}:${number()}`
    const flag = flags[Math.floor(next() * flags.length)]!
    if (pick < 0.25 || count === 0) {
      const text = `Subject: ${next()}\r\n\r\nbody\r\n`
      return runCommand(`APPEND INBOX (${flag}) {${text.length}}`, text)
    }
    if (pick < 0.5)
      return runCommand(`STORE ${some()} ${next() < 0.5 ? "+" : "-"}FLAGS${next() < 0.3 ? ".SILENT" : ""} (${flag})`)
    if (pick < 0.65) return runCommand(`FETCH ${some()} (UID FLAGS)`)
    if (pick < 0.72) return runCommand(`SEARCH ${some()} KEYWORD work`)
    if (pick < 0.8) return runCommand("EXPUNGE")
    if (pick < 0.86) return runCommand(`COPY ${number()} INBOX`)
    if (pick < 0.9) return runCommand(`MOVE ${number()} Trash`)
    if (pick < 0.95) return runCommand("NOOP")
    return runCommand(`UID FETCH 1:* (FLAGS)`)
  }
  const api = async () => {
    const next = random(5)
    for (let n = 0; n < 15; n++) {
      const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=20`, { token })
      const one = body.messages[Math.floor(next() * body.messages.length)]
      if (one !== undefined)
        await call(service.base, "DELETE", `/api/identities/${handle}/messages/${one.id}`, { token })
    }
  }
  await Promise.all([
    api(),
    ...sessions.map(async (session) => {
      for (let n = 0; n < 80; n++) {
        const { tagged } = await turn(session)
        // A number that another session just removed is not an error.
        expect(tagged).toMatch(/^(OK|NO \[EXPUNGEISSUED\]|BAD There is no message)/)
      }
    }),
  ])

  const ends = []
  for (const { client, view, runCommand } of sessions) {
    await runCommand("NOOP")
    await runCommand("FETCH 1:* (UID FLAGS)")
    const fresh = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
    const now = new Views()
    for (const line of (await fresh.say("EXAMINE INBOX")).untagged) now.hear(line, false)
    for (const line of (await fresh.say("FETCH 1:* (UID FLAGS)")).untagged) now.hear(line, false)
    expect(view.uids).toEqual(now.uids)
    expect(view.uids.map((uid) => view.flags.get(uid))).toEqual(now.uids.map((uid) => now.flags.get(uid)))
    ends.push(JSON.stringify(view.uids))
    fresh.close()
    client.close()
  }
  expect(new Set(ends).size).toBe(1)
  // The API and the folders contain the same messages.
  const astray = await service.query<{ n: number }>(
    (sql) => sql`
      select (select count(*) from message m where not exists (select from placed p where p.message_id = m.id))::int
           + (select count(*) from placed p where not exists (select from message m where m.id = p.message_id))::int as n`,
  )
  expect(astray).toEqual([{ n: 0 }])
  const uids = await service.query<{ gaps: number }>(
    (sql) => sql`
      select (f.uid_next - 1 - (select count(*) from placed p where p.folder_id = f.id)
                             - (select count(*) from vanished v where v.folder_id = f.id))::int as gaps
      from folder f where f.name in ('INBOX', 'Trash')`,
  )
  expect(uids).toEqual([{ gaps: 0 }, { gaps: 0 }])
})
