/** An app with access to some Identities tries every way to reach other Identities and the whole account. */
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventIds, authorize, testAuthorization, type NamedRequest } from "./TestAuthorization.ts"
import { endpoints, rows } from "./Manifest.ts"

const mcp = { via: "mcp" } as const satisfies NamedRequest
const ask = (id: string, credential: string, named: NamedRequest = {}) =>
  authorize(endpoints.get(id)!, credential, { ...named, ...mcp })
const replay = JSON.stringify({ webhook_id: "wh_01kjr8xr3v7k2t9m4q6w8y0zab" })

layer(testAuthorization)("Grant of an app", (it) => {
  it.effect("is accepted for the tools only", () =>
    Effect.gen(function* () {
      const there = { path: { handle: "ada" } }
      expect(yield* authorize(endpoints.get("cards.read")!, "grant of ada", there)).toBe("unauthenticated")
      expect(yield* ask("cards.read", "grant of ada", there)).toEqual({ subject: "ada", realm: undefined })
    }),
  )

  it.effect("cannot access other Identities, however they are named", () =>
    Effect.gen(function* () {
      const ways: ReadonlyArray<readonly [string, (name: string) => NamedRequest]> = [
        ...rows
          .filter(({ naming }) => naming === "Path")
          .map(({ id }) => [id, (handle: string) => ({ path: { handle } })] as const),
        ...rows
          .filter(({ naming }) => naming === "Query")
          .map(({ id }) => [id, (identity: string) => ({ query: { identity } })] as const),
        ["exports.create", (identity) => ({ body: JSON.stringify({ identity }) })],
      ]
      expect(ways.length).toBeGreaterThan(50)
      for (const [id, naming] of ways) {
        expect(yield* ask(id, "grant of ada", naming("bob")), id).toBe("identity_not_granted")
        // The response does not reveal whether the Identity exists.
        expect(yield* ask(id, "grant of ada", naming("nobody")), id).toBe("identity_not_granted")
        const opened = yield* ask(id, "grant of ada and bob", naming("bob"))
        expect(opened, id).toMatchObject({})
        expect(yield* ask(id, "grant of ada and bob", naming("nobody")), id).toBe("identity_not_granted")
      }
      const event = (of: keyof typeof eventIds) => ({ path: { id: eventIds[of] }, body: replay })
      expect(yield* ask("events.replay", "grant of ada", event("bob"))).toBe("not_found")
      expect(yield* ask("events.replay", "grant of ada", event("org"))).toBe("not_found")
      expect(yield* ask("events.replay", "grant of ada and bob", event("bob"))).toMatchObject({ realm: "bob" })
    }),
  )

  it.effect("cannot access the account, except for lists of its Identities", () =>
    Effect.gen(function* () {
      const ofOrg = rows.filter(({ scope, naming }) => (scope === "org" || scope === "admin") && naming === undefined)
      expect(ofOrg.length).toBeGreaterThan(8)
      for (const { id } of ofOrg) {
        // The responses of these contain the granted Identities only.
        const isFiltered = ["identities.list", "org_mail.stopped"].includes(id)
        const expected = isFiltered ? { subject: undefined, realm: undefined } : "org_scope_required"
        expect(yield* ask(id, "grant of ada"), id).toEqual(expected)
        expect(yield* ask(id, "grant of ada and bob"), id).toEqual(expected)
      }
      for (const { id } of rows.filter(({ scope }) => scope === "session")) {
        expect(yield* ask(id, "grant of all"), id).toBe("session_required")
      }
    }),
  )

  it.effect("must name an Identity if it has several", () =>
    Effect.gen(function* () {
      for (const id of ["vault.list", "exports.list", "exports.create"]) {
        expect(yield* ask(id, "grant of ada")).toEqual({ subject: undefined, realm: "ada" })
        expect(yield* ask(id, "grant of ada and bob")).toBe("identity_not_granted")
        expect(yield* ask(id, "grant of all")).toEqual({ subject: undefined, realm: null })
      }
      expect(yield* ask("session.whoami", "grant of ada and bob")).toEqual({ subject: undefined, realm: undefined })
    }),
  )

  it.effect("may use its scopes, except where Identity Keys are excluded", () =>
    Effect.gen(function* () {
      const ada = { path: { handle: "ada" } }
      expect(yield* ask("identities.read", "grant to read", ada)).toMatchObject({ subject: "ada" })
      expect(yield* ask("cards.read", "grant to read", ada)).toBe("scope_missing")
      const start = { ...ada, body: JSON.stringify({ outgoing: "active" }) }
      expect(yield* ask("mail_settings.switch", "grant of ada", start)).toBe("admin_required")
      expect(yield* ask("mail_settings.switch", "grant of all", start)).toBe("admin_required")
    }),
  )
})
