/** The audit record of every endpoint: it contains that the call happened, and never its content. */
import { expect, layer } from "@effect/vitest"
import { planOf } from "@svc/api/audit/AuditedOperations"
import { ShowsSecret } from "@svc/domain/account/Policy"
import { Reveals } from "@svc/domain/account/EndpointScope"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect } from "effect"
import { eventIds, authorize, testAuthorization, RecordedCalls } from "../api/TestAuthorization.ts"
import { rows } from "../api/Manifest.ts"

const hidden = "xyzzy-never-on-record"

/** Secrets whose entry the statement stores that reads or creates them. The handlers of this test have no statement. */
const inStatement = new Set([
  "agent_sign_ins.create",
  "vault.value",
  "api_keys.create",
  "api_keys.createForIdentity",
  "api_keys.rotate",
  "webhooks.create",
  "webhooks.rotate",
  "identities.rotate",
  "device_confirmation.approve",
  "proof.createToken",
  "proof.createSignature",
])

/** Names that an entry may contain because they are in the path; nothing else of a request may appear in it. */
const path = (id: string) => ({
  handle: "ada",
  id: id === "events.replay" ? eventIds.ada : "wh_01kj0000000000000000000000",
  name: "github.token",
  platform: "bluesky",
  number: "1",
  userCode: hidden,
  delivery_id: "dlv_01kj0000000000000000000000",
})
const hiddenParts = {
  query: { text: hidden, code: hidden, state: hidden, cursor: hidden },
  body: JSON.stringify({ value: hidden, text: hidden, subject: hidden, password: hidden, name: hidden }),
}

layer(testAuthorization)("the audited operations", (it) => {
  it.effect("that show a secret, access to one, or the log are exactly these", () =>
    Effect.sync(() => {
      const secret = rows.filter(({ id, endpoint }) => {
        const [identifier = ""] = id.split(".")
        return planOf({ endpoint, group: { identifier } }).class === "secret"
      })
      expect(secret.map(({ id }) => id).sort()).toEqual([
        "agent_sign_ins.create",
        "api_keys.create",
        "api_keys.createForIdentity",
        "api_keys.rotate",
        "audit.export",
        "audit.list",
        "audit.read",
        "device_confirmation.approve",
        "exports.archive",
        "identities.rotate",
        "identities.secrets",
        "proof.createSignature",
        "proof.createToken",
        "vault.value",
        "vault.versions",
        "webhooks.create",
        "webhooks.rotate",
      ])
    }),
  )
})

layer(testAuthorization)("the record of", (it) => {
  it.effect.each(rows.filter(({ scope }) => scope !== "public"))("$id", ({ id, endpoint }) =>
    Effect.gen(function* () {
      const handled = {
        path: path(id),
        query: endpoint.query === undefined ? {} : hiddenParts.query,
        body: endpoint.payload.size === 0 ? "" : hiddenParts.body,
      }
      const shows = Context.get(endpoint.annotations, Reveals) || Context.get(endpoint.annotations, ShowsSecret)
      const outcomes = [
        Effect.succeed({ value: hidden }),
        Effect.fail(new NotFound({ detail: hidden })),
        Effect.die(new Error(hidden)),
      ]
      for (const [at, handler] of outcomes.entries()) {
        yield* Effect.exit(authorize(endpoint, "session", handled, handler))
        const { acts } = yield* RecordedCalls
        expect(JSON.stringify(acts), "no record contains the content").not.toContain(hidden)
        expect(acts.length, "somebody asked").toBeGreaterThan(0)
        expect(new Set(acts.map(({ action }) => action))).toEqual(new Set([id]))
        if (shows) expect(acts[0]).toMatchObject({ class: "secret", before: !inStatement.has(id) })
        else if (endpoint.method !== "GET") expect(acts.at(-1)!.class).not.toBe("read")
        if (endpoint.method !== "GET" && at > 0) {
          expect(acts.at(-1)).toMatchObject(
            at === 1 ? { outcome: "refused", code: "not_found" } : { outcome: "failed", code: "internal" },
          )
        }
      }
      // A rejected change is recorded.
      const refusal = yield* Effect.exit(
        authorize(endpoint, "identity_key", { ...handled, path: { ...path(id), handle: "bob" } }),
      )
      const { acts } = yield* RecordedCalls
      if (endpoint.method !== "GET" && String(refusal).includes("_required")) {
        expect(acts).toMatchObject([{ action: id, outcome: "refused" }])
      }
    }),
  )
})
