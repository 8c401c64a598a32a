/** Keys with a single scope at the other entrances: mail clients and the tunnel link. */
import { readFileSync } from "node:fs"
import { connectTunnel, TunnelRefused } from "@svc/tunnel-edge/agent/Agent"
import { scopeNames } from "@svc/domain/ScopeTable"
import { beforeAll, describe, expect, it } from "vitest"
import { page } from "../../scripts/scopes.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { ImapClient } from "../harness/Imap.ts"
import { converse } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})

const scopes = [...scopeNames]
const keyWith = async (rights: object): Promise<string> => {
  const create = () =>
    call(service.base, "POST", `/api/identities/${ada.handle}/keys`, {
      token: session,
      body: { name: "one", ...rights },
    })
  // A busy machine can answer that the actor is unavailable for a moment.
  const { status, body } = await eventually(create, (response) => response.status !== 503)
  expect([status, body.code]).toEqual([201, undefined])
  return body.key
}

/** Returns the scopes whose keys are accepted. All attempts run concurrently, because failures delay later ones. */
const acceptedScopes = async (enters: (key: string) => Promise<boolean>) => {
  const entered = await Promise.all(scopes.map(async (scope) => enters(await keyWith({ scopes: [scope] }))))
  return scopes.filter((_, at) => entered[at])
}

const byImap = async (key: string) => {
  const client = await ImapClient.connect(service.imapPort)
  const { tagged } = await client.say(`LOGIN "${ada.secrets.imap.username}" "${key}"`)
  client.close()
  return tagged.startsWith("OK")
}
const bySubmission = async (key: string) => {
  const pair = Buffer.from(`\0${ada.secrets.smtp.username}\0${key}`).toString("base64")
  const replies = await converse(service.submissionPort, ["EHLO laptop\r\n", `AUTH PLAIN ${pair}\r\n`, "QUIT\r\n"])
  return replies.some((line) => line.startsWith("235 "))
}
const byLink = async (key: string) => {
  const tunnel = connectTunnel({
    key,
    handle: ada.handle,
    links: 1,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    client: "test",
    handler: (_: unknown, outgoing: any) => outgoing.end(),
  })
  const failure = await tunnel.ready.then(
    () => undefined,
    (error: unknown) => error,
  )
  await (failure === undefined ? tunnel.close() : tunnel.ended)
  if (failure instanceof TunnelRefused) expect(failure.code).toBe("scope_missing")
  else if (failure !== undefined) throw failure
  return failure === undefined
}

// This suite runs first, because later failed attempts get delayed responses.
describe("Key for another network", () => {
  it("is rejected at every entrance", async () => {
    const key = await keyWith({ networks: ["192.0.2.0/24"] })
    const linked = byLink(key).then(
      () => "linked",
      (error: unknown) => String(error),
    )
    expect([await byImap(key), await bySubmission(key)]).toEqual([false, false])
    expect(await linked).toContain("network_refused")
  })
})

describe.concurrent("Key with one scope", () => {
  it("opens the Mailbox to a mail client if it may write mail", async () => {
    expect(scopes.length).toBeGreaterThan(20)
    expect(await acceptedScopes(byImap)).toEqual(["mail:write", "mail:send", "mail:admin"])
  })

  it("lets a mail client send if it may send mail", async () => {
    expect(await acceptedScopes(bySubmission)).toEqual(["mail:send", "mail:admin"])
  })

  it("opens the Tunnel if it may change Tunnels", async () => {
    expect(await acceptedScopes(byLink)).toEqual(["tunnel:write", "tunnel:admin"])
    expect(readFileSync(page, "utf8")).toContain("A tunnel needs `tunnel:write`")
  })
})
