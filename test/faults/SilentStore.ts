/** Database connections that go silent without closing, as behind a firewall that dropped their state. */
import { setTimeout as sleep } from "node:timers/promises"
import { Redacted } from "effect"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { startSilentProxy } from "../harness/SilentProxy.ts"
import { settingsOf } from "./Store.ts"

export const silentStore = async (): Promise<Row> => {
  const deployment = await deploy()
  // This process keeps the database running and is connected directly.
  await deployment.start(["edge"])
  const { path, username, password } = settingsOf(deployment)
  const proxy = await startSilentProxy({ path: path! })
  try {
    const url = `postgres://${username}:${encodeURIComponent(Redacted.value(password!))}@127.0.0.1:${proxy.port}/postgres`
    const service = await deployment.start(["api", "actors", "mail"], { DATABASE_URL: url })
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const read = () => call(service.base, "GET", `/api/identities/${handle}`, { token: session })
    const write = () =>
      call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
        token: session,
        body: { url: "http://127.0.0.1:9/", event_types: ["email.sent"] },
      })
    await write()
    const backs: Array<number> = []
    const unexpected = new Set<string>()
    let silenced = 0
    for (let round = 0; round < 3; round++) {
      silenced += proxy.silence()
      const start = Date.now()
      const works = async (
        ask: () => Promise<{ readonly status: number; readonly body: { readonly code?: string } }>,
      ) => {
        const { status, body } = await ask()
        if (status >= 300 && status !== 503) unexpected.add(`${status} ${body.code}`)
        return status < 300
      }
      await until("reads and writes", async () => (await Promise.all([works(read), works(write)])).every(Boolean), 30)
      backs.push(Date.now() - start)
      await sleep(500)
    }
    return {
      id: "silent-store",
      ok: unexpected.size === 0 && backs.every((millis) => millis < 15_000),
      what: "every connection to PostgreSQL goes silent without closing, three times",
      figures: {
        "connections silenced": silenced,
        "recovered after ms": backs.join(", "),
        "answers but 503": [...unexpected].join(", ") || "none",
      },
    }
  } finally {
    await proxy.stop()
    await deployment.stop()
  }
}
