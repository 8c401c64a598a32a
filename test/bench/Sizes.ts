/**
 * `node test/bench/Sizes.ts [Identities]` prints the size of an Identity, a 5 kB message and an Event in PostgreSQL,
 * including indexes, and the number of database connections of a process.
 */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment } from "../harness/Deployment.ts"
import { inStore } from "../faults/Store.ts"
import { message, session } from "./Letters.ts"

const identities = Number(process.argv[2] ?? 300)
const messagesEach = 3

/** Returns the size of every table in bytes, by name. */
const sizes = async (deployment: Deployment): Promise<ReadonlyMap<string, number>> => {
  await inStore(deployment, "vacuum")
  const rows = await inStore<{ name: string; bytes: number }>(
    deployment,
    `select c.relname as name, pg_total_relation_size(c.oid)::float8 as bytes from pg_class c
     join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind = 'r'`,
  )
  return new Map(rows.map(({ name, bytes }) => [name, bytes]))
}

const grown = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>, each: number) => {
  const tables = [...after]
    .map(([name, bytes]) => [name, bytes - (before.get(name) ?? 0)] as const)
    .filter(([, bytes]) => bytes > 0)
    .toSorted(([, one], [, other]) => other - one)
  const all = tables.reduce((sum, [, bytes]) => sum + bytes, 0)
  const parts = tables.slice(0, 6).map(([name, bytes]) => `${name} ${Math.round(bytes / each)}`)
  return `${Math.round(all / each)} bytes (${parts.join(", ")})`
}

/** Runs the work in a limited number of concurrent strands. */
const strands = async (count: number, of: number, one: (n: number) => Promise<unknown>): Promise<void> => {
  let next = 0
  const strand = async () => {
    while (next < count) await one(next++)
  }
  await Promise.all(Array.from({ length: of }, strand))
}

const deployment = await deploy()
try {
  const service = await deployment.start()
  const { session: token } = await signUp(service.base)
  const handles: Array<string> = []
  const make = async () => void handles.push((await makeIdentity(service.base, token)).handle)
  // The first Identities create what each table contains once.
  await strands(20, 4, make)
  const empty = await sizes(deployment)
  await strands(identities, 4, make)
  const made = await sizes(deployment)
  console.log(`an Identity: ${grown(empty, made, identities)}`)

  const letters = identities * messagesEach
  const open = await Promise.all([session(service.smtpPort), session(service.smtpPort)])
  await Promise.all(
    open.map(async (one, at) => {
      for (let n = at; n < letters; n += open.length) {
        const to = `${handles[n % handles.length]}@mail.localhost`
        await one.send(to, message(to))
      }
      one.close()
    }),
  )
  const full = await sizes(deployment)
  console.log(`a message: ${grown(made, full, letters)}`)
  const { body } = await call(service.base, "GET", `/api/identities/${handles[0]}/messages?limit=1`, { token })
  console.log(`its size as it came: ${body.messages[0].size} bytes`)

  const connections = await inStore<{ name: string; open: number }>(
    deployment,
    `select application_name as name, count(*)::int as open from pg_stat_activity
     where application_name like 'svc:%' and backend_start < now() - interval '2 seconds' group by 1 order by 1`,
  )
  console.log(`connections of a process: ${connections.map(({ name, open: n }) => `${name} ${n}`).join(", ")}`)
} finally {
  await deployment.stop()
}
