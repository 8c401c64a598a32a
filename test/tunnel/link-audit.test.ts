/** Audit records about the links of agents. */
import { expect, it } from "@effect/vitest"
import * as LinkAudit from "@svc/tunnel-edge/edge/links/LinkAudit"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { Effect, Layer, Redacted } from "effect"

it.effect("An accepted link, a refused caller and a rejected credential are recorded with their source", () =>
  Effect.gen(function* () {
    const acts: Array<unknown> = []
    const strangers: Array<unknown> = []
    const recorders = Layer.mergeAll(
      Layer.succeed(Audit, { record: (act: unknown) => Effect.sync(() => void acts.push(act)) } as never),
      Layer.succeed(RefusedCredentials, {
        turnedAway: (credential: Redacted.Redacted<string>, what: unknown) =>
          Effect.sync(() => void strangers.push([Redacted.value(credential), what])),
      } as never),
    )
    const audit = yield* Effect.provide(LinkAudit.make, recorders)
    const caller = {
      kind: "identity_key",
      org: { id: "o" },
      credentialId: "k",
      keyName: "laptop",
      grant: null,
    } as never
    const app = { kind: "grant", org: { id: "o" }, credentialId: "g", keyName: null, grant: { id: "g", client: "App" } }
    const from = { address: "192.0.2.1", client: "svc/1.0" }
    const source = { address: "192.0.2.1", via: "tunnel", tool: null, user_agent: "svc/1.0" }
    yield* audit.linked(caller, from, { id: "i", handle: "ada" })
    yield* audit.refused(app as never, from, "bob", "not_found")
    for (const code of ["unauthenticated", "unavailable"])
      yield* audit.credentialRejected(Redacted.make("secret"), from, code)
    const act = {
      org: "o",
      class: "auth",
      action: "tunnel.link",
      scope: "tunnel:write",
      source,
      requestId: null,
      actor: {
        kind: "identity_key",
        id: "k",
        name: "laptop",
        client: null,
      },
    }
    expect(acts).toEqual([
      {
        ...act,
        identity: { id: "i", handle: "ada" },
        target: { type: "tunnel", id: "i", name: "ada" },
        outcome: "allowed",
        code: null,
      },
      {
        ...act,
        actor: { kind: "grant", id: "g", name: null, client: "App" },
        identity: null,
        target: { type: "tunnel", id: null, name: "bob" },
        outcome: "refused",
        code: "not_found",
      },
    ])
    // An outage is no refusal.
    expect(strangers).toEqual([["secret", { action: "tunnel.link", code: "unauthenticated", source, requestId: null }]])
  }),
)
