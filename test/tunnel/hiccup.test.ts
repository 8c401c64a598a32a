import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

/** Returns the number of shards that this service owns, counted by the locks of its database session, and that session's process id. */
const shards = async () => {
  const [row] = await service.query<{ pid: number | null; locks: number }>(
    (sql) => sql`
      select min(pid) as pid, count(*)::int as locks from pg_locks
      where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  )
  return row!
}

it("writes resume within seconds after the ownership session fails", async () => {
  const { handle } = await makeIdentity(service.base, session)
  for (let round = 0; round < 2; round++) {
    const { pid, locks } = await shards()
    await service.query((sql) => sql`select pg_terminate_backend(${pid})`)
    const statuses: Array<number> = []
    // Repeats until another session has acquired the lock of every shard.
    for (let now = await shards(); now.pid === pid || now.locks < locks; now = await shards()) {
      const { status } = await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
        token: session,
        body: { proxy_protocol: statuses.length % 2 === 0 },
      })
      statuses.push(status)
    }
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  }
})
