/**
 * Benchmarks the policy evaluation of a request: a caller against the policy of every endpoint. The references are a
 * credential without scopes and networks, and requests to the floor. No sockets and no store; the lookups are part of
 * the single-call rows.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { Api } from "@svc/domain/Api"
import { judge, judgeNetwork, judgeScope, type Named } from "@svc/domain/account/PolicyEvaluation"
import { networksOf } from "@svc/domain/account/Networks"
import { policyOf } from "@svc/domain/account/Policy"
import { scopesOf, unlimited } from "@svc/domain/account/Scope"
import { scopeOf } from "@svc/domain/account/EndpointScope"
import type { IdentityId, IdentityRef } from "@svc/domain/IdentityRef"
import { Result } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { round, type Row } from "../harness/Report.ts"
import * as Load from "./Load.ts"
import * as References from "./References.ts"
import { connections } from "./Stage.ts"
import { drift, inTurn } from "./Turns.ts"

const ada: IdentityRef = {
  id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a01" as IdentityId,
  handle: "ada",
  canonical: "ada",
  status: "ready",
}
const book = { baseUrl: "http://localhost:8080" }
/** A credential usually calls from one place; the most expensive case is a new address for each call. */
const here = ["203.0.113.77"]
const everywhere = Array.from({ length: 16 }, (_, n) => `203.0.113.${n}`)

const plain: CallerInfo = {
  kind: "admin_key",
  org: { id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4aff", email: "owner@example.org" } as CallerInfo["org"],
  credentialId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a02",
  keyName: "ci",
  scopes: unlimited,
  identities: null,
  networks: null,
  expiresAt: null,
  grant: null,
  session: null,
}

/** As many Identities, scopes and networks as a credential realistically has; the matching one is last. */
const narrow: CallerInfo = {
  ...plain,
  kind: "grant",
  scopes: scopesOf(
    "identity:admin mail:admin card:admin tunnel:admin webhook:admin event:admin connector:admin vault:write",
  ),
  identities: [...Array.from({ length: 20 }, (_, n) => ({ ...ada, canonical: `agent${n}` })), ada],
  networks: networksOf([...Array.from({ length: 19 }, (_, n) => `10.${n}.0.0/16`), "203.0.113.0/24"].join(" ")),
}

const endpoints = Object.values(Api.groups)
  .flatMap(({ endpoints }) => Object.values<HttpApiEndpoint.Top>(endpoints))
  .flatMap((endpoint) => {
    const policy = policyOf(endpoint)
    const named: Named =
      policy.names._tag === "Nowhere"
        ? { _tag: "Nothing" }
        : { _tag: "Handle", canonical: "ada", readable: true, found: ada }
    return policy.scope === "public" ? [] : [{ policy, named, scope: scopeOf(endpoint) }]
  })

/** Counts the endpoints that accept a caller, so that nothing is optimized away. */
type Judge = () => number

const everything =
  (caller: CallerInfo, addresses: ReadonlyArray<string>): Judge =>
  () => {
    let accepted = 0
    let at = 0
    for (const { policy, named, scope } of endpoints) {
      if (judgeNetwork(caller, { address: addresses[at++ % addresses.length]! }) !== undefined) continue
      if (Result.isFailure(judge(policy, caller, named))) continue
      if (judgeScope(scope, caller, book) === undefined) accepted++
    }
    return accepted
  }

const withoutScopes: Judge = () => {
  let accepted = 0
  for (const { policy, named } of endpoints) {
    if (Result.isSuccess(judge(policy, plain, named))) accepted++
  }
  return accepted
}

const sliceMillis = 300
/** Returns the CPU time of one evaluation in nanoseconds. */
const slice = (run: Judge): number => {
  const until = performance.now() + sliceMillis
  const before = process.cpuUsage()
  let rounds = 0
  while (performance.now() < until) {
    for (let n = 0; n < 20; n++) run()
    rounds += 20
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / (rounds * endpoints.length)
}

/** Maximum increase of the cost in microseconds. */
const moreAtMost = 5

export const authorize = async (): Promise<Row> => {
  const judges = {
    before: withoutScopes,
    wide: everything(plain, here),
    narrow: everything(narrow, here),
    moving: everything(narrow, everywhere),
  }
  const least = { before: Infinity, wide: Infinity, narrow: Infinity, moving: Infinity }
  const names = ["before", "wide", "narrow", "moving"] as const
  for (const name of names) slice(judges[name])
  for (let turn = 0; turn < 12; turn++) {
    for (const name of names) least[name] = Math.min(least[name], slice(judges[name]))
  }
  const floor = await References.floor()
  try {
    const drive = Load.http(
      floor.port,
      { method: "GET", path: "/api/identities/ada", headers: { authorization: "Bearer x" } },
      connections,
    )
    const got = await inTurn({ floor: { drive, pid: floor.pid } })
    const floorMicros = got.floor.cpu?.least
    const micros = (nanos: number) => round(nanos / 1000, 3)
    return {
      id: "authorize",
      ok: judges.before() > 0 && judges.narrow() > 0 && got.floor.wrong === 0,
      what: `evaluation of a caller against the policies of ${endpoints.length} endpoints, compared with a caller without scopes and networks`,
      unreliable: drift({ cpu: { "the floor": got.floor } }),
      goals: [
        {
          what: "additional us with scopes and networks",
          value: micros(least.narrow - least.before),
          atMost: moreAtMost,
        },
      ],
      figures: {
        "us without": micros(least.before),
        "us, everything allowed": micros(least.wide),
        "us, 21 Identities, 8 scopes, 20 networks": micros(least.narrow),
        "us, each from another address": micros(least.moving),
        ...(floorMicros === undefined
          ? {}
          : {
              "floor us": round(floorMicros, 1),
              "more, of a call of the floor": round((least.narrow - least.before) / 1000 / floorMicros, 4),
            }),
      },
    }
  } finally {
    floor.stop()
  }
}
