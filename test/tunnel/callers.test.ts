/** Agents that sign requests to a Tunnel (Web Bot Auth): who the local program learns of, and whom the edge refuses. */
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client"
import { generateKeyPairSync } from "node:crypto"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { createClient } from "@agent-identity/sdk"
import { calculateJwkThumbprint, exportJWK } from "jose"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf, openConnection, sendRaw } from "../harness/Public.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { agent, talk, viaLoopback } from "./A2aAgents.ts"
import { type Options, signedBy } from "./SignedRequests.ts"

let here: OwnService
let there: OwnService
const sessions = new Map<OwnService, string>()
const tunnels: Array<Tunnel> = []
const directories: Array<Server> = []
beforeAll(async () => {
  ;[here, there] = [
    await startService(),
    await startService({ env: { SVC_MASTER_KEY: Buffer.alloc(32, 9).toString("base64") } }),
  ]
  for (const service of [here, there]) sessions.set(service, (await signUp(service.base)).session)
})
afterAll(async () => {
  for (const tunnel of tunnels) await tunnel.close()
  for (const directory of directories) directory.close().closeAllConnections()
  await here.stop()
  await there.stop()
})

type Listener = NonNullable<Parameters<typeof connectTunnel>[0]["handler"]>
const echo: Listener = (incoming, outgoing) => {
  incoming.resume().on("end", () => outgoing.end(JSON.stringify({ ...incoming.headers, trailers: incoming.trailers })))
}

const inhabit = async (service: OwnService, handler: Listener = echo, callers?: unknown) => {
  const session = sessions.get(service)!
  const { handle, secrets, identity } = await makeIdentity(service.base, session)
  const tunnel = connectTunnel({
    key: secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    handler,
  })
  tunnels.push(tunnel)
  await tunnel.ready
  const set = (body: unknown, token = session) =>
    call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, { token, body })
  if (callers !== undefined) expect((await set({ callers })).status).toBe(200)
  const client = createClient({ key: secrets.identity_key, baseUrl: service.base, fetch: viaLoopback }).identity(handle)
  const origin = `http://${hostOf(handle)}:${service.edgePort}`
  return { handle, origin, set, key: secrets.identity_key, port: identity.tunnel.port, fetch: client.fetch }
}

/** An agent elsewhere, with a directory of its key. */
const stranger = async (serve?: (keys: string) => Parameters<typeof createServer>[1]) => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const jwk = await exportJWK(publicKey)
  const keys = JSON.stringify({ keys: [jwk] })
  let reads = 0
  const usual: Parameters<typeof createServer>[1] = (_, response) =>
    response.setHeader("content-type", "application/http-message-signatures-directory+json").end(keys)
  const listener = serve?.(keys) ?? usual
  const directory = createServer((request, response) => {
    reads++
    listener!(request, response)
  })
  directories.push(directory)
  await new Promise<void>((resolve) => directory.listen(0, "127.0.0.1", resolve))
  const origin = `http://127.0.0.1:${(directory.address() as AddressInfo).port}`
  const kid = await calculateJwkThumbprint(jwk)
  return {
    origin,
    reads: () => reads,
    signed: (url: string, options?: Options) => signedBy(origin, kid, privateKey, url, options),
  }
}
const get = (of: { readonly handle: string }, headers: Record<string, string> = {}, target = "/", service = here) =>
  fetchPublic(service.edgePort, of.handle, target, {
    headers: { host: `${hostOf(of.handle)}:${service.edgePort}`, ...headers },
  })
const seen = ({ body }: { readonly body: string }) => {
  const { "svc-agent": agent, "svc-agent-handle": handle } = JSON.parse(body)
  return [agent, handle]
}

describe("two deployments", () => {
  it("whose agents call each other by A2A through their tunnels share no secret", async () => {
    const cardOf = (service: OwnService, handle: string) =>
      new DefaultAgentCardResolver().resolve(service.base, `/@${handle}/agent-card.json`)
    const later: Record<string, Listener> = {}
    const on =
      (name: string): Listener =>
      (incoming, outgoing) =>
        later[name]!(incoming, outgoing)
    const ada = await inhabit(here, on("ada"))
    const bob = await inhabit(there, on("bob"), [ada.origin])
    await ada.set({ callers: [bob.origin] })
    const eve = await inhabit(here)
    const [adaCard, bobCard] = [await cardOf(here, ada.handle), await cardOf(there, bob.handle)]
    later["ada"] = agent(adaCard)
    later["bob"] = agent(bobCard)
    expect(await talk(bobCard, "hello", ada.fetch)).toBe(`HELLO, ${ada.origin}`)
    expect(await talk(adaCard, "hello", bob.fetch)).toBe(`HELLO, ${bob.origin}`)
    // Nobody else is admitted: neither without a signature nor as another agent.
    await expect(talk(bobCard, "hello", viaLoopback)).rejects.toThrow()
    const refused = await eve.fetch(bob.origin)
    expect(refused.status).toBe(401)
    expect(refused.headers.get("accept-signature")).toContain('tag="web-bot-auth"')
    expect(await refused.text()).toContain(`not open to ${eve.origin}`)
  })
})

describe("the fields of a verified caller", () => {
  it("name its origin, and its Handle if it is an Identity of this service", async () => {
    const bob = await inhabit(here)
    const ada = await inhabit(here)
    expect(seen({ body: await (await ada.fetch(bob.origin)).text() })).toEqual([ada.origin, ada.handle])
    const carol = await stranger()
    expect(seen(await get(bob, carol.signed(bob.origin)))).toEqual([carol.origin, undefined])
    await bob.set({ callers: [`@${ada.handle.toUpperCase()}`] })
    const admitted = await eventually(
      () => ada.fetch(bob.origin),
      ({ status }) => status === 200,
    )
    expect(seen({ body: await admitted.text() })).toEqual([ada.origin, ada.handle])
    expect((await get(bob, carol.signed(bob.origin))).status).toBe(401)
  })

  it("never arrive from a client, in any spelling and place, with or without a signature that proves nothing", async () => {
    const bob = await inhabit(here)
    const carol = await stranger()
    const forged = { "Svc-Agent": carol.origin, "SVC-AGENT-HANDLE": "ada", svc_agent: "x", "Svc-Agent_Handle": "x" }
    const proof = carol.signed(bob.origin)
    const altered = { ...proof, signature: proof.signature.replace(/.=:$/, "A=:").replace(/^sig1=:./, "sig1=:A") }
    const cases: ReadonlyArray<Record<string, string>> = [
      {},
      altered,
      carol.signed(`${bob.origin}/other`),
      carol.signed(bob.origin, { age: 75 }),
      carol.signed(bob.origin, { covered: ["@authority"] }),
      { ...carol.signed(bob.origin), "signature-agent": `sig1="${bob.origin}"` },
    ]
    for (const [at, fields] of cases.entries()) {
      const answer = await get(bob, { ...forged, ...fields })
      expect(answer.status, String(at)).toBe(200)
      expect(
        Object.keys(JSON.parse(answer.body)).filter((name) => /^svc[-_]agent/i.test(name)),
        String(at),
      ).toEqual([])
    }
    // The client cannot remove or add the fields by other means.
    const named = await get(bob, { ...carol.signed(bob.origin), connection: "svc-agent, close" })
    expect(seen(named)).toEqual([carol.origin, undefined])
    const trailing = await fetchPublic(here.edgePort, bob.handle, "/", {
      method: "POST",
      headers: { "transfer-encoding": "chunked", trailer: "svc-agent" },
      body: "x",
      trailers: { "Svc-Agent": carol.origin, other: "1" },
    })
    expect(JSON.parse(trailing.body).trailers).toEqual({ other: "1" })
    // Each further request of a connection is judged separately.
    const connection = await openConnection(here.edgePort)
    const text = (fields: Record<string, string>) =>
      `GET / HTTP/1.1\r\nHost: ${hostOf(bob.handle)}:${here.edgePort}\r\n${Object.entries(fields)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join("")}\r\n`
    for (const [fields, expected] of [
      [carol.signed(bob.origin), carol.origin],
      [forged, undefined],
      [carol.signed(bob.origin), carol.origin],
      [{}, undefined],
    ] as const) {
      const answer = await connection.say(text(fields), /\}$/)
      expect(seen({ body: answer.slice(answer.indexOf("{")) })[0]).toBe(expected)
    }
    const both = await connection.say(text(carol.signed(bob.origin)) + text({}), /\}[^]*\}$/)
    expect(both.match(/"svc-agent"/g)).toHaveLength(1)
    connection.close()
  })
})

describe("a repeated request", () => {
  it("is refused, on the same and on another connection, also where anyone may call", async () => {
    const bob = await inhabit(here)
    const carol = await stranger()
    const fields = carol.signed(bob.origin)
    expect((await get(bob, fields)).status).toBe(200)
    const again = await get(bob, fields)
    expect([again.status, again.body]).toEqual([401, "This request was received before. Sign each request anew.\n"])
    expect(again.headers["accept-signature"]).toBeDefined()
    const connection = await openConnection(here.edgePort)
    const host = `Host: ${hostOf(bob.handle)}:${here.edgePort}\r\n`
    await connection.say(`GET / HTTP/1.1\r\n${host}\r\n`, /\}$/)
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    expect(await connection.say(`GET / HTTP/1.1\r\n${host}${lines.join("")}\r\n`, /anew\.\n$/)).toContain(" 401 ")
    await connection.closed
    // The same signature at another Tunnel does not belong to the request.
    const dan = await inhabit(here, echo, "signed")
    expect((await get(dan, fields)).body).toContain("does not belong to this request")
  })
})

describe("the setting callers", () => {
  it("applies to every way to the local program, and to open connections", async () => {
    const bob = await inhabit(here)
    const carol = await stranger()
    const open = await openConnection(here.edgePort)
    await open.say(`GET / HTTP/1.1\r\nHost: ${hostOf(bob.handle)}\r\n\r\n`, /\}$/)
    const raw = `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    await bob.set({ callers: "signed" })
    await eventually(
      () => get(bob),
      ({ status }) => status === 401,
    )
    expect(await open.say(`GET / HTTP/1.1\r\nHost: ${hostOf(bob.handle)}\r\n\r\n`, /\n$/)).toMatch(
      / 401 [^]*Accept-Signature/i,
    )
    await eventually(
      () => sendRaw(bob.port, raw),
      (text) => text === "",
    )
    expect((await get(bob, carol.signed(bob.origin))).status).toBe(200)
    const conflict = await bob.set({ tls: "passthrough" })
    expect([conflict.status, conflict.body.errors.map(({ path }: any) => path)]).toEqual([400, ["/tls", "/callers"]])
    for (const wrong of [[], ["https://x.example/path"], ["a b"], "nobody"]) {
      expect((await bob.set({ callers: wrong })).body.code, JSON.stringify(wrong)).toBe("invalid_request")
    }
    // The Identity's own key neither narrows nor widens who may call.
    for (const callers of ["anyone", ["ada"]]) expect((await bob.set({ callers }, bob.key)).status).toBe(403)
    expect((await bob.set({ proxy_protocol: false })).body.settings.callers).toBe("signed")
  })

  it("is checked again if it changed while a signature was verified", async () => {
    const bob = await inhabit(here, echo, "signed")
    const [carol, eve] = [await stranger(), await stranger()]
    const head = (fields: Record<string, string>) =>
      ["GET / HTTP/1.1", `Host: ${hostOf(bob.handle)}:${here.edgePort}`]
        .concat(
          Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
          "",
          "",
        )
        .join("\r\n")
    const open = await openConnection(here.edgePort)
    await open.say(head(carol.signed(bob.origin)), /\}$/)
    for (const say of [open.say, (await openConnection(here.edgePort)).say]) {
      const held = Promise.withResolvers<void>()
      const slow = await stranger((keys) => async (_, response) => {
        await held.promise
        response.setHeader("content-type", "application/http-message-signatures-directory+json").end(keys)
      })
      await bob.set({ callers: "signed" })
      await eventually(
        () => get(bob, eve.signed(bob.origin)),
        ({ status }) => status === 200,
      )
      const answer = say(head(slow.signed(bob.origin)), /\n$/)
      await eventually(
        async () => slow.reads(),
        (reads) => reads === 1,
      )
      await bob.set({ callers: [carol.origin] })
      await eventually(
        () => get(bob, eve.signed(bob.origin)),
        ({ status }) => status === 401,
      )
      held.resolve()
      expect(await answer).toMatch(/^HTTP\/1\.1 401 /)
    }
  })
})

describe("the keys of strangers", () => {
  it("are read once and cached, and a new key is found", async () => {
    const bob = await inhabit(here, echo, "signed")
    const carol = await stranger()
    for (let n = 0; n < 3; n++) expect((await get(bob, carol.signed(bob.origin))).status).toBe(200)
    expect(carol.reads()).toBe(1)
  })

  it("are not read from a directory that is too long, hangs or redirects, and other requests do not wait", async () => {
    const bob = await inhabit(here, echo, "signed")
    const tooLong = await stranger((keys) => (_, response) => {
      response.setHeader("content-type", "application/json").end(keys.padEnd(6000))
    })
    const answer = await get(bob, tooLong.signed(bob.origin))
    expect([answer.status, answer.body]).toEqual([401, "The directory of keys cannot be read (too_large).\n"])
    const hanging = await stranger(() => () => {})
    const moved = await stranger(() => (_, response) => response.writeHead(302, { location: tooLong.origin }).end())
    const carol = await stranger()
    let isWaiting = true
    const waiting = get(bob, hanging.signed(bob.origin)).finally(() => (isWaiting = false))
    await eventually(
      async () => hanging.reads(),
      (reads) => reads === 1,
    )
    expect((await get(bob, carol.signed(bob.origin))).status).toBe(200)
    expect((await get(bob, moved.signed(bob.origin))).body).toContain("no directory of keys (status 302)")
    expect(isWaiting).toBe(true)
    expect((await waiting).body).toContain("did not respond in time")
  })
})
