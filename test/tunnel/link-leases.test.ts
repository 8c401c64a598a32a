/** How an edge treats its links after their leases and credentials were checked. All services and links are stubs. */
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Identities } from "@svc/cluster/actor/Identities"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Unauthenticated, Unavailable } from "@svc/domain/problems/Problem"
import * as BackgroundEffects from "@svc/tunnel-edge/edge/BackgroundEffects"
import * as Leases from "@svc/tunnel-edge/edge/links/Leases"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import { goaway } from "@svc/tunnel-edge/protocol/Manifest"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { addresses } from "../harness/Stores.ts"
import { adminKey } from "./StubbedDeployment.ts"

const successor = { instance: "newer", client: "test" }

/** Leases of an edge with one link for each of the ids. A link has its id as its name and as its token. */
const edgeWith = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
  const did: Array<ReadonlyArray<unknown>> = []
  const note = (...what: ReadonlyArray<unknown>) => void did.push(what)
  const registry = Registry.make(() => 0)
  const streams = new Map<number, unknown>()
  for (const id of ids) {
    registry.add({
      id,
      canonical: id,
      token: id,
      draining: id === "draining",
      link: {
        goaway: (reason: number, more?: object) => note(id, reason, more),
        close: (why: string) => note(id, why),
        mux: { streams },
      },
    } as never)
  }
  const resolve = (token: Redacted.Redacted<string>) =>
    Effect.suspend((): Effect.Effect<unknown, unknown> => {
      if (Redacted.value(token) === "revoked") return Effect.fail(new Unauthenticated({ detail: "unknown" }))
      if (Redacted.value(token) === "unchecked") return Effect.fail(new Unavailable({ detail: "the store is away" }))
      return Effect.succeed(adminKey)
    })
  const renewals = new Map([
    ["renewed", true],
    ["unnoticed", false],
  ])
  const links = {
    renew: () => Effect.succeed(renewals),
    restore: ({ id, edgeId, edgeAddress }: { readonly id: string; edgeId: string; edgeAddress: string }) =>
      Effect.sync(() => {
        note("restore", id, edgeId, edgeAddress)
        return { restored: id === "lost", successor: id === "replaced" ? successor : null }
      }),
    detach: (gone: ReadonlyArray<string>) => Effect.sync(() => note("detach", ...gone)),
  }
  const stub = <S>(service: unknown, methods: object) => Layer.succeed(service as never, methods as never) as S
  const leases = yield* Leases.make({
    self: { id: "edge", address: "edge:1", isDraining: false },
    registry,
    running: yield* BackgroundEffects.make,
    ports: undefined as never,
    allotted: undefined as never,
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        addresses,
        stub<Layer.Layer<CredentialLookup>>(CredentialLookup, { resolve }),
        stub<Layer.Layer<TunnelLinks>>(TunnelLinks, links),
        stub<Layer.Layer<TunnelQueries>>(TunnelQueries, {}),
        stub<Layer.Layer<Audit>>(Audit, {}),
        stub<Layer.Layer<RefusedCredentials>>(RefusedCredentials, {}),
        stub<Layer.Layer<Identities>>(Identities, {
          of: (name: string) => ({ TunnelChanged: () => Effect.sync(() => note("notify", name)) }),
        }),
      ),
    ),
  )
  return { leases, registry, did, streams }
})

describe("an edge", () => {
  it.effect("closes links whose credential was revoked, and no link while the store cannot be reached", () =>
    Effect.gen(function* () {
      const { leases, did } = yield* edgeWith("valid", "revoked", "unchecked")
      yield* leases.recheckCredentials
      expect(did).toEqual([["revoked", goaway.revoked, undefined]])
    }).pipe(Effect.scoped),
  )

  it.effect("restores a lost lease unless its link drains, was replaced, or has no Identity", () =>
    Effect.gen(function* () {
      const { leases, did } = yield* edgeWith("renewed", "unnoticed", "lost", "draining", "replaced", "gone")
      yield* leases.renew
      yield* Effect.yieldNow
      expect(did.toSorted()).toEqual(
        [
          ["notify", "unnoticed"],
          ["notify", "lost"],
          ...["lost", "replaced", "gone"].map((id) => ["restore", id, "edge", "edge:1"]),
          ["replaced", goaway.replaced, { successor }],
          ["gone", goaway.revoked, undefined],
        ].toSorted(),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("tells its agents to reconnect, is busy while a stream is open, and removes its leases at the end", () =>
    Effect.gen(function* () {
      const { leases, registry, did, streams } = yield* edgeWith("one", "two")
      leases.leave()
      expect(did.splice(0)).toEqual(["one", "two"].map((id) => [id, goaway.drain, undefined]))
      expect(registry.all().every(({ draining }) => draining)).toBe(true)
      expect(leases.isBusy()).toBe(false)
      streams.set(1, {})
      expect(leases.isBusy()).toBe(true)
      yield* leases.close
      expect(did).toEqual([
        ["one", "drained"],
        ["two", "drained"],
        ["detach", "one", "two"],
      ])
    }).pipe(Effect.scoped),
  )
})
