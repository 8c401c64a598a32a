/** Two identical messages are two messages; a retried transaction whose reply the sender did not see is one. */
import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { converse, upToData } from "../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const messages = async (handle: string): Promise<ReadonlyArray<{ readonly id: string }>> =>
  (await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session })).body.messages
const marks = () => service.query((sql) => sql<{ n: number }>`select count(*)::int as n from unanswered_mail`)
const noMarks = () => eventually(marks, ([row]) => row?.n === 0)

const data = (subject: string) => `From: cron@example.org\r\nSubject: ${subject}\r\n\r\nNothing to report.\r\n.\r\n`

/** Sends the message and returns the reply to its data. */
const deliver = async (to: string | ReadonlyArray<string>, subject: string, from?: string) => {
  const [first, ...others] = typeof to === "string" ? [to] : to
  const commands = upToData(first!, from)
  commands.splice(3, 0, ...others.map((other) => `RCPT TO:<${other}>\r\n`))
  return (await converse(service.smtpPort, [...commands, data(subject), "QUIT\r\n"])).at(-2)!
}

/** Sends the message and disconnects before the 250 can be written. */
const deliverUnheard = async (to: string, subject: string) => {
  const socket: Socket = connect(service.smtpPort, "127.0.0.1")
  const lines = [...upToData(to), data(subject)]
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject)
    socket.on("data", () => {
      const line = lines.shift()
      socket.write(line!, () => lines.length === 0 && resolve())
    })
  })
  socket.resetAndDestroy()
}

describe("Identical messages", () => {
  it("are all stored, whether sequential or concurrent", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const to = `${handle}@mail.localhost`
    for (let i = 0; i < 3; i++) expect(await deliver(to, "nightly")).toMatch(/^250 /)
    expect(await messages(handle)).toHaveLength(3)
    await Promise.all(Array.from({ length: 5 }, () => deliver(to, "nightly")))
    expect(await messages(handle)).toHaveLength(8)
    await noMarks()
  })

  it("for a Mailbox under several spellings are stored once", async () => {
    const { handle } = await makeIdentity(service.base, session)
    await deliver([`${handle}@mail.localhost`, `${handle.slice(0, 2)}-${handle.slice(2)}@mail.localhost`], "spelled")
    expect(await messages(handle)).toHaveLength(1)
  })

  it("for the operator are all stored", async () => {
    for (let i = 0; i < 2; i++) expect(await deliver("abuse@mail.localhost", "complaint")).toMatch(/^250 /)
    expect(await service.query((sql) => sql`select subject from system_mail`)).toHaveLength(2)
  })
})

describe("A retried transaction", () => {
  it("for two Mailboxes of which one had no room is stored once in both", async () => {
    const [roomy, full] = [await makeIdentity(service.base, session), await makeIdentity(service.base, session)]
    const to = [roomy, full].map(({ handle }) => `${handle}@mail.localhost`)
    const used = (bytes: number) =>
      service.query(
        (sql) => sql`
          update mailbox m set bytes_used = ${bytes} from identity i
          where i.id = m.identity_id and i.canonical = ${full.handle}`,
      )
    const counts = async () => [(await messages(roomy.handle)).length, (await messages(full.handle)).length]
    // Room for one byte, so RCPT is accepted.
    await used(1024 ** 3 - 1)
    for (let i = 0; i < 2; i++) expect(await deliver(to, "for two")).toMatch(/^452 4\.2\.2 /)
    expect(await counts()).toEqual([1, 0])
    await used(0)
    expect(await deliver(to, "for two")).toMatch(/^250 /)
    expect(await counts()).toEqual([1, 1])
    await noMarks()
  })

  it("after a lost connection is stored once, and the next message separately", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const to = `${handle}@mail.localhost`
    // Stored, but its 250 is delayed by a lock on the sender's Mailbox until the client is gone.
    await service.query((sql) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select 1 from mailbox m join identity i on i.id = m.identity_id where i.canonical = ${handle} for update of m`
          yield* Effect.promise(() => deliverUnheard(to, "lost"))
          yield* Effect.promise(() =>
            eventually(
              () =>
                service.query(
                  (other) => other<{ n: number }>`select count(*)::int as n from pg_locks where not granted`,
                ),
              ([row]) => row!.n > 0,
            ),
          )
          return []
        }),
      ),
    )
    await eventually(
      () => messages(handle),
      (list) => list.length === 1,
    )
    expect(await marks()).toEqual([{ n: 1 }])
    expect(await deliver(to, "lost")).toMatch(/^250 /)
    expect(await messages(handle)).toHaveLength(1)
    await noMarks()
    expect(await deliver(to, "lost")).toMatch(/^250 /)
    expect(await messages(handle)).toHaveLength(2)
  })

  it("after a 451 for one recipient is stored once for the other", async () => {
    const there = await makeIdentity(service.base, session)
    const late = await makeIdentity(service.base, session)
    const to = [`${there.handle}@mail.localhost`, `${late.handle}@mail.localhost`]
    const commands = upToData(to[0]!)
    commands.splice(3, 0, `RCPT TO:<${to[1]}>\r\n`)
    // The second Mailbox fails after the recipients were accepted.
    await service.query(
      (sql) => sql`alter table message add constraint held check (recipient <> ${sql.literal(`'${to[1]}'`)})`,
    )
    expect(await deliver(to, "half")).toMatch(/^451 /)
    expect([await messages(there.handle), await messages(late.handle)].map((list) => list.length)).toEqual([1, 0])
    await service.query((sql) => sql`alter table message drop constraint held`)
    expect(await deliver(to, "half")).toMatch(/^250 /)
    expect([await messages(there.handle), await messages(late.handle)].map((list) => list.length)).toEqual([1, 1])
    await noMarks()
  })

  it("by another sender is another message", async () => {
    const { handle } = await makeIdentity(service.base, session)
    await deliver(`${handle}@mail.localhost`, "once")
    await deliver(`${handle}@mail.localhost`, "once", "other@example.org")
    expect(await messages(handle)).toHaveLength(2)
  })
})

describe("Marks of answered transactions", () => {
  // The service stops after this test, which is the last.
  it("are deleted at shutdown even if they could not be deleted before", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const held = `create function held() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(4711); return null; end $$`
    const trigger = "create trigger held before delete on unanswered_mail for each statement execute function held()"
    for (const one of [held, trigger]) await service.query((sql) => sql.unsafe(one))
    const waiting = () =>
      service.query(
        (sql) => sql<{ n: number }>`
        select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = 4711 and not granted`,
      )
    const areWaiting = (removals: number) => eventually(waiting, ([row]) => row!.n === removals)
    let remaining: Promise<void> | undefined
    await service.query((sql) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(4711)`
          yield* Effect.promise(async () => {
            expect(await deliver(`${handle}@mail.localhost`, "first")).toMatch(/^250 /)
            await areWaiting(1)
            expect(await deliver(`${handle}@mail.localhost`, "second")).toMatch(/^250 /)
            remaining = service.leave()
            await areWaiting(2)
          })
          return []
        }),
      ),
    )
    await remaining
    expect(await marks()).toEqual([{ n: 0 }])
  })
})
