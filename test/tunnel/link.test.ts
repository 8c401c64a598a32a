import { connectTunnel, TunnelRefused } from "@svc/tunnel-edge/agent/Agent"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import * as Public from "../harness/Public.ts"
import { hostOf } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { browser, obtainTokens, registerClient } from "../oauth/Consent.ts"

const here = "http://localhost:4711/callback"
let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const open = (key: string, more: object) =>
  connectTunnel({ key, edge: `http://connect.tunnel.localhost:${service.edgePort}`, client: "test", ...more })
const ask = (handle: string, target: string) => Public.fetchPublic(service.edgePort, handle, target)
const answering = (text: string) => ({ handler: (_: unknown, outgoing: any) => outgoing.end(text) })

/** The tests run concurrently, because each waits for a periodic task of the edge. */
describe.concurrent("a link", () => {
  const connected = async (handle: string) =>
    (await call(service.base, "GET", `/api/identities/${handle}`, { token: session })).body.tunnel.connected
  const eventsOf = async (handle: string) =>
    (await call(service.base, "GET", `/api/events?handle=${handle}`, { token: session })).body.events.map(
      ({ type }: any) => type,
    )

  it("appears on the Identity and in its Events", async () => {
    const eve = await makeIdentity(service.base, session)
    expect(await connected(eve.handle)).toBe(false)
    const own = open(eve.secrets.identity_key, answering("in process"))
    const address = await own.ready
    expect(address).toMatchObject({
      hostname: hostOf(eve.handle),
      url: eve.identity.tunnel.url,
      tcp_port: eve.identity.tunnel.port,
    })
    await eventually(
      () => connected(eve.handle),
      (is) => is,
    )
    expect((await ask(eve.handle, "/")).body).toBe("in process")
    const report = () => call(service.base, "GET", `/api/identities/${eve.handle}/tunnel`, { token: session })
    expect((await report()).body).toMatchObject({
      ...eve.identity.tunnel,
      connected: true,
      links: [{ client: "test" }],
    })
    await own.close()
    await eventually(
      () => connected(eve.handle),
      (is) => !is,
    )
    // Requests and bytes are counted and stored apart.
    const isCounted = ({ requests, bytes_in, bytes_out }: { [count: string]: number }) =>
      requests === 1 && bytes_in! > 50 && bytes_out! > 50
    const { body } = await eventually(report, ({ body }) => isCounted(body.usage))
    expect(body).toMatchObject({ connected: false, links: [] })
    // A busy machine can lose a link in between.
    expect((await eventsOf(eve.handle)).join()).toMatch(/^(?:tunnel\.disconnected,tunnel\.connected,)+identity\.ready$/)
  })

  it("survives the loss of its lease in the store", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const own = open(secrets.identity_key, { links: 1, ...answering("still here") })
    await own.ready
    await eventually(
      () => connected(handle),
      (is) => is,
    )
    // The state after a crash of PostgreSQL, which empties unlogged tables.
    const deleted = await service.query(
      (sql) => sql`
        delete from tunnel_link l using identity i where i.id = l.identity_id and i.handle = ${handle} returning l.canonical`,
    )
    expect(deleted).toHaveLength(1)
    await eventually(
      async () => (await call(service.base, "GET", `/api/identities/${handle}/tunnel`, { token: session })).body.links,
      (links) => links.length === 1,
    )
    expect((await ask(handle, "/")).body).toBe("still here")
    await own.close()
  })

  it("is refused to unauthorized callers", async () => {
    const refusal = async (key: string, handle?: string) => {
      const refused = open(key, { port: 1, ...(handle === undefined ? {} : { handle }) })
      const error = await refused.ready.catch((one: unknown) => one)
      await refused.ended
      return error instanceof TunnelRefused ? [error.status, error.code] : error
    }
    const [ada, other] = [await makeIdentity(service.base, session), await makeIdentity(service.base, session)]
    const stranger = (await signUp(service.base)).session
    expect(await refusal("svc_id_nonsense")).toEqual([401, "unauthenticated"])
    expect(await refusal(other.secrets.identity_key, ada.handle)).toEqual([403, "foreign_identity"])
    expect(await refusal(stranger, ada.handle)).toEqual([404, "not_found"])
    expect(await refusal(session, "nobody-here")).toEqual([404, "not_found"])
    // Additional keys are limited by their scopes and networks. Access tokens of apps cannot open a link.
    const narrow = async (rights: object) =>
      (await call(service.base, "POST", `/api/identities/${ada.handle}/keys`, { token: session, body: rights })).body
        .key
    expect(await refusal(await narrow({ name: "reads", scopes: ["tunnel:read"] }))).toEqual([403, "scope_missing"])
    expect(await refusal(await narrow({ name: "elsewhere", networks: ["192.0.2.0/24"] }))).toEqual([
      403,
      "network_refused",
    ])
    const app = (await registerClient(service.base, [here])).body["client_id"]
    const { access } = await obtainTokens(service.base, browser(service.base, session), app, here, {
      agents: "all",
      rights: "act",
    })
    expect(access).toMatch(/^svc_oat_/)
    expect(await refusal(access, ada.handle)).toEqual([401, "unauthenticated"])
  })

  it("moves to the newer process of an agent", async () => {
    const eve = await makeIdentity(service.base, session)
    const first = open(eve.secrets.identity_key, answering("first"))
    await first.ready
    expect((await ask(eve.handle, "/")).body).toBe("first")
    const second = open(session, { handle: eve.handle, ...answering("second") })
    await second.ready
    await first.ended
    expect((await ask(eve.handle, "/")).body).toBe("second")
    await second.close()
  })

  it("closes after its credential is revoked", async () => {
    const eve = await makeIdentity(service.base, session)
    const own = open(eve.secrets.identity_key, answering("here"))
    await own.ready
    await call(service.base, "DELETE", `/api/keys/${eve.secrets.api_key.id}`, { token: session })
    await own.ended
    expect((await ask(eve.handle, "/")).status).toBe(503)
  })
})
