/** Requests to the Tunnel of ada at an edge whose other parts are in memory. */
import { createHash, generateKeyPairSync } from "node:crypto"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { TunnelDocuments } from "@svc/cluster/proof/TunnelDocuments"
import { type Standing, TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Addresses } from "@svc/domain/Addresses"
import { defaultSettings, type TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import type { Client } from "@svc/tunnel-edge/edge/http/ConnectionContext"
import * as Hosts from "@svc/tunnel-edge/edge/routing/Hosts"
import * as Requests from "@svc/tunnel-edge/edge/routing/Requests"
import { judge } from "@svc/tunnel-edge/protocol/RequestHead"
import { Effect, Layer } from "effect"
import { signedBy } from "./SignedRequests.ts"

const book = {
  environment: "production",
  baseUrl: "https://api.example",
  tunnelDomain: "tunnel.example",
  tunnelScheme: "https",
} as Addresses["Service"]
export const card = {
  name: "Ada",
  description: "Writes.",
  version: "1",
  capabilities: { streaming: false, push_notifications: false, extended_agent_card: false },
  default_input_modes: ["text/plain"],
  default_output_modes: ["text/plain"],
  skills: [],
  interfaces: null,
  provider: null,
  documentation_url: null,
  icon_url: null,
}
export const origin = "https://caller.example"
const { privateKey, publicKey } = generateKeyPairSync("ed25519")

export const headOf = (
  target = "/",
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
  host = "ada.tunnel.example",
) =>
  judge(
    [
      `${method} ${target} HTTP/1.1`,
      ...Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}`),
    ].join("\r\n"),
  ).head
/** Returns the fields of an agent's signature for ada's Tunnel. */
export const signature = (by = origin) => signedBy(by, "kid", privateKey, "https://ada.tunnel.example/")
export const signedHead = () => headOf("/", signature())
export const basic = (pair: string) => ({ authorization: `Basic ${Buffer.from(pair).toString("base64")}` })
export const sha256 = (text: string) => createHash("sha256").update(text).digest()

/** Requests to the Tunnel of ada, whose settings and surroundings the test changes. */
export const tunnel = async (settings: Partial<TunnelSettings> = {}, more: Partial<Standing> = {}) => {
  const standingOf = (over: Partial<TunnelSettings>, others: Partial<Standing> = {}): Standing => ({
    identityId: "identity",
    handle: "Ada",
    orgId: "org",
    status: "ready",
    port: null,
    settings: { ...defaultSettings, ...over },
    passwordHash: undefined,
    holders: [],
    ...others,
  })
  const state = {
    standing: standingOf(settings, more) as Standing | undefined,
    fails: false,
    way: { open: () => undefined, isLeaving: () => false, localHost: "localhost:3000" as string | null } as
      | object
      | undefined,
    blocked: 0,
    card: undefined as unknown,
    document: Effect.succeed({ contentType: "text/x", body: "grüße", headers: { etag: '"1"' } }) as Effect.Effect<
      any,
      any
    >,
    limit: Effect.succeed(undefined) as Effect.Effect<any, any>,
    /** Called while the keys of the agent that signed the request are read. */
    verifying: () => {},
    busy: false,
  }
  const did: Array<string> = []
  const run = Effect.runPromise
  const requests = await run(
    Requests.make({
      hosts: Hosts.make(book),
      routes: {
        standing: (name: string) =>
          Effect.suspend(
            () => (
              did.push(`look ${name}`),
              state.fails ? Effect.fail("down") : Effect.succeed(name === "ada" ? state.standing : undefined)
            ),
          ),
        find: (name: string) => Effect.sync(() => (did.push(`find ${name}`), state.way)),
        open: () => ({ now: () => state.standing, close: () => void did.push("close") }),
        forget: (name: string) => Effect.sync(() => void did.push(`forget ${name}`)),
      } as never,
      metering: {
        blockedFor: (org: string) => (did.push(`budget of ${org}`), state.blocked),
        countOffline: (identity: string) => void did.push(`offline ${identity}`),
        open: (org: string, identity: string) => ({ org, identity }),
      } as never,
      run,
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          Layer.succeed(Addresses, book),
          Layer.mock(TunnelQueries)({ cardOf: () => Effect.sync(() => state.card as never) }),
          Layer.mock(TunnelDocuments)({
            read: (path) => (did.push(`read ${path}`), Effect.suspend(() => state.document)),
          }),
          Layer.mock(PublicLimits)({
            take: (name, client) => (did.push(`limit ${name} ${client}`), Effect.suspend(() => state.limit)),
          }),
          Layer.mock(AgentKeys)({
            cached: () => undefined,
            find: () =>
              Effect.suspend(() => {
                state.verifying()
                return state.busy
                  ? Effect.fail({ message: "Too many keys are read.", isBusy: true } as never)
                  : Effect.succeed({ handle: "eve", keys: new Map([["kid", publicKey]]) })
              }),
          }),
        ),
      ),
    ),
  )
  const route = (head = headOf(), client: Partial<Client> = {}) =>
    run(requests.route(head, { address: "192.0.2.1", proto: "https", serverName: undefined, ...client }))
  /** Returns status, code or text, and seconds of Retry-After; or `forwarded`. */
  const shown = (bytes: Buffer) => {
    const [head, body] = bytes.toString("utf8").split("\r\n\r\n")
    const after = /retry-after: (\d+)/.exec(head!)?.[1]
    return [
      Number(head!.slice(9, 12)),
      body!.startsWith("{") ? (JSON.parse(body!).code ?? "card") : body!.trim(),
      ...(after === undefined ? [] : [Number(after)]),
    ]
  }
  const got = async (head = headOf(), address = "192.0.2.1") => {
    const found = await route(head, { address })
    return found._tag === "Stream" ? ["forwarded", found.caller?.origin] : shown(found.bytes)
  }
  /** Returns the terms of a connection that was just routed. */
  const terms = async (head = headOf()) => {
    const found = await route(head)
    if (found._tag !== "Stream") throw new Error(found.bytes.toString())
    return { terms: found.enter(() => {}), found }
  }
  return { state, did: () => did.splice(0), route, got, terms, shown, requests, standingOf }
}
