/** Creation of exports by the Org's actor, and their download. */
import { ask } from "@svc/cluster/actor/Ask"
import * as Ownership from "@svc/cluster/actor/Ownership"
import * as ExportSource from "@svc/cluster/account/exports/ExportSource"
import { Exports } from "@svc/cluster/account/exports/Exports"
import { Orgs } from "@svc/cluster/account/Orgs"
import { load, type OrgState } from "@svc/cluster/account/OrgState"
import { capabilities, exportContents } from "@svc/cluster/capabilities/Capabilities"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Writes } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { maxLimit } from "@svc/domain/Paging"
import type { Message } from "@svc/domain/mail/Message"
import { expect, layer } from "@effect/vitest"
import { Effect, Latch, Layer, Stream } from "effect"
import { unzipSync } from "fflate"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { rows } from "../harness/Stores.ts"

const anyway = { ifTag: null, ifAbsent: false, ifPresent: false }
const statusOf = (id: string) =>
  Effect.map(
    rows((sql) => sql<{ status: string }>`select status from export where id = ${id}`),
    ([row]) => row?.status,
  )

/** Requests an export, waits for it, and returns its public id. */
const exported = Effect.fnUntraced(function* (org: string, about?: { readonly id: string; readonly handle: string }) {
  const export_id = yield* makeUuidV7
  const named = { identity_id: about?.id ?? null, handle: about?.handle ?? null }
  yield* ask((yield* Orgs).of(org).Export({ export_id, ...named }))
  yield* waitUntil(statusOf(export_id), (status) => status === "ready", 0)
  return toPublic("exp_", export_id)
})

/** Returns the files of the archive; `by` is the Identity that downloads it, or null for the account. */
const archive = Effect.fnUntraced(function* (org: string, by: string | null, id: string, values = false) {
  const stream = yield* (yield* Exports).archive(org, by, id, values)
  const chunks = yield* Stream.runCollect(stream)
  const members = Object.entries(unzipSync(new Uint8Array(Buffer.concat([...chunks]))))
  return Object.fromEntries(members.map(([name, bytes]) => [name, Buffer.from(bytes).toString()]))
})

const lines = <A>(text: string | undefined): ReadonlyArray<A> =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as A)

const filled = Effect.fnUntraced(function* (org: string, stem: string) {
  const handle = newHandle(stem)
  const { id, actor } = yield* makeIdentity(org, handle)
  const raw = new TextEncoder().encode(`Subject: to ${stem}\r\n\r\nFrom here\r\nx\r\n`)
  const content = { raw, text: "From here\nx", html: null, headers: [], search_text: "" }
  yield* ask(actor.ReceiveMail(yield* receivedMail({ subject: `to ${stem}`, tag: "a", tags: ["a", stem], content })))
  return { id, handle, actor }
})

layer(actors())("an export", (it) => {
  it.effect("contains everything in the API's format, mail as mbox, and Vault values only on request", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const [ada, bob] = [yield* filled(org, "ada"), yield* filled(org, "bob")]
      yield* (yield* Vault).put({ org, identity: null }, "token", { value: "s3cret" }, anyway)
      const id = yield* exported(org)
      const files = yield* archive(org, null, id, true)
      expect(lines<{ handle: string }>(files["identities.jsonl"]).map(({ handle }) => handle)).toEqual([
        ada.handle,
        bob.handle,
      ])
      expect(lines<Message>(files["messages.jsonl"]).map(({ subject }) => subject)).toEqual(["to ada", "to bob"])
      expect(lines<Message>(files["messages.jsonl"]).map(({ tags }) => tags)).toEqual([
        ["a", "ada"],
        ["a", "bob"],
      ])
      const places = lines<{ folders: ReadonlyArray<string> }>(files["messages.jsonl"]).map(({ folders }) => folders)
      expect(places).toEqual([["INBOX"], ["INBOX"]])
      const shared = lines<{ name: string; use: string }>(files["folders.jsonl"]).filter(({ use }) => use === "inbox")
      expect(shared.map(({ name }) => name)).toEqual(["INBOX", "INBOX"])
      expect(files[`${ada.handle}.mbox`]).toMatch(
        /^From grace@example\.org \w{3} \w{3} \d\d [\d:]{8} \d{4}\n[^]*\n>From here\n/i,
      )
      expect(lines(files["vault.jsonl"])).toMatchObject([{ identity: null, name: "token" }])
      expect(lines(files["vault_values.jsonl"])).toMatchObject([{ name: "token", value: "s3cret" }])
      expect(lines<{ type: string }>(files["events.jsonl"]).map(({ type }) => type)).toContain("email.received")
      const withoutValues = yield* archive(org, null, id)
      const declared = capabilities.flatMap(({ exports }) =>
        exports.flatMap(({ members }): ReadonlyArray<string> => members),
      )
      const written = new Set(Object.keys(withoutValues).map((name) => name.replace(/^\w+(?=\.mbox$)/, "*")))
      expect(declared).toEqual(expect.arrayContaining([...written]))
      expect(JSON.stringify(withoutValues)).not.toContain("s3cret")

      const own = yield* exported(org, ada)
      expect(Object.keys(yield* archive(org, ada.id, own, true)).filter((name) => /mbox|values/.test(name))).toEqual([
        `${ada.handle}.mbox`,
      ])
      // An Identity's export has nothing of the account and of other Identities.
      const ofAda = yield* archive(org, ada.id, own, true)
      expect(JSON.stringify(ofAda)).not.toMatch(/\bbob|s3cret|"token"|\\"token\\"/)
      // An export that the caller could not have requested does not exist for it.
      for (const [who, what] of [
        [ada.id, id],
        [bob.id, own],
      ] as const) {
        expect(yield* Effect.flip(archive(org, who, what))).toMatchObject({ code: "not_found" })
      }
      expect(yield* Effect.flip(archive(yield* makeOrg, null, id))).toMatchObject({ code: "not_found" })
      const stored = yield* rows((sql) => sql<{ sealed: Uint8Array }>`select sealed from export_piece`)
      for (const { sealed } of stored) expect(Buffer.from(sealed).includes("From here")).toBe(false)
    }),
  )

  it.effect("is stored in pieces of at most 1 MiB, and has the size of its members", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { actor } = yield* makeIdentity(org, newHandle("large"))
      // The messages are written in slices of 128 KiB. One would end between CR and LF, another begins within a line.
      // The content does not repeat itself, since a failing search for a repetitive text would take minutes.
      const filler = Array.from({ length: 100_000 }, (_, n) => n).join(" ")
      const slice = filler.slice(0, 128 * 1024)
      const text = `${slice.slice(1)}\n${slice}From ${filler.slice(0, 470_000)}`
      for (const subject of ["one", "two"]) {
        const raw = new TextEncoder().encode(`Subject: ${subject}\n\n${text}`.replaceAll("\n", "\r\n"))
        const content = { raw, text, html: null, headers: [], search_text: "" }
        yield* ask(actor.ReceiveMail(yield* receivedMail({ subject, content, from: null })))
      }
      const id = yield* exported(org)
      const files = yield* archive(org, null, id)
      const sizes = yield* rows(
        (sql) => sql<{
          size: number
        }>`select length(sealed) as size from export_piece p join export e on e.id = p.export_id
          where e.org_id = ${org} and member like '%.mbox'`,
      )
      expect(sizes.length).toBeGreaterThan(1)
      for (const { size } of sizes) expect(size).toBeLessThan(1024 * 1024 + 100)
      const total = Object.values(files).reduce((sum, file) => sum + Buffer.byteLength(file), 0)
      expect((yield* (yield* Exports).read(org, null, id)).size).toBe(total)
      const all = Object.values(files).join("")
      expect(all.split(text).length).toBe(3)
      expect([all.match(/^From MAILER-DAEMON /gm)?.length, all.match(/\n\nFrom MAILER/g)?.length]).toEqual([2, 1])
    }),
  )

  it.effect("contains every entry of lists that are longer than a page", () =>
    Effect.gen(function* () {
      const [org, sql] = [yield* makeOrg, yield* Writes]
      const { id, handle } = yield* filled(org, "edith")
      for (const identity of [null, id as IdentityId])
        yield* (yield* Vault).put({ org, identity }, "token", { value: "v" }, anyway)
      const numbers = sql`generate_series(1, 2 * ${maxLimit}::int) as n`
      yield* sql`
        insert into allowed_recipient (identity_id, address, reason, created_at)
        select ${id}, 'a' || n || '@example.org', 'manual', now() from ${numbers}`
      yield* sql`
        insert into webhook (id, identity_id, url, event_types, created_at)
        select uuidv7(), ${id}, 'https://example.org/' || n, '{*}', now() from ${numbers}`
      yield* sql`
        insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
        select uuidv7(), ${id}, 1, '{}', '{"text":"x"}', now(), now() from ${numbers}`
      yield* sql`
        insert into folder (id, identity_id, name, uid_validity, uid_next, created_at)
        select uuidv7(), ${id}, 'f' || n, 1, 1, now() from ${numbers}`
      yield* sql`
        insert into vault_secret
        select (jsonb_populate_record(s, to_jsonb(s) || jsonb_build_object('id', uuidv7(), 'name', 'n' || n))).*
        from vault_secret s, ${numbers} where s.org_id = ${org}`
      yield* sql`
        insert into event (id, org_id, identity_id, handle, type, data, created_at)
        select uuidv7(), ${org}, ${id}, 'edith', 'mail.stopped', '{}', now() from ${numbers}`
      yield* sql`
        insert into api_key (id, org_id, name, token_prefix, token_hash, created_at)
        select uuidv7(), ${org}, 'k' || n, 'p', int4send(n), now() from ${numbers}`
      yield* insertSignIn(sql, handle, { count: 2 * maxLimit })
      const files = yield* archive(org, null, yield* exported(org))
      expect(lines(files["events.jsonl"]).length).toBeGreaterThan(2 * maxLimit)
      const owners = lines<{ identity: string | null }>(files["vault.jsonl"]).map(({ identity }) => identity)
      expect(new Set(owners)).toEqual(new Set([null, handle]))
      const stored = { folder: "folders", vault_secret: "vault", webhook: "webhooks", draft: "drafts" }
      for (const [table, member] of Object.entries({ ...stored, agent_sign_in: "sign-ins", api_key: "api_keys" })) {
        const [row] = yield* sql.unsafe<{ n: number }>(
          `select count(*)::int as n from ${table} t where to_jsonb(t) ->> 'org_id' = $1 or to_jsonb(t) ->> 'identity_id' = $2`,
          [org, id],
        )
        expect(row!.n, table).toBeGreaterThan(2 * maxLimit - 1)
        expect(lines(files[`${member}.jsonl`]), member).toHaveLength(row!.n)
      }
      const addresses = lines<{ address: string }>(files["allowed_recipients.jsonl"]).map(({ address }) => address)
      expect(new Set(addresses).size).toBeGreaterThanOrEqual(2 * maxLimit)
    }),
  )

  it.effect("is not found after it has expired, by its Identity and by the account", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const grace = yield* filled(org, "expires")
      const id = yield* exported(org, grace)
      const exports = yield* Exports
      const page = { limit: 10, cursor: undefined }
      for (const by of [grace.id, null]) expect((yield* exports.list(org, by, page)).entries).toHaveLength(1)
      const sql = yield* Writes
      yield* sql`update export set expires_at = now() where org_id = ${org}`
      for (const by of [grace.id, null]) {
        expect((yield* exports.list(org, by, page)).entries).toEqual([])
        expect(yield* Effect.flip(exports.read(org, by, id))).toMatchObject({ code: "not_found" })
        expect(yield* Effect.flip(exports.archive(org, by, id, false))).toMatchObject({ code: "not_found" })
      }
    }),
  )

  it.effect("is deleted with any Identity that it contains", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const [ada, bob] = [yield* filled(org, "grace"), yield* filled(org, "edsger")]
      const [whole, own, other] = [yield* exported(org), yield* exported(org, ada), yield* exported(org, bob)]
      yield* ask(ada.actor.Delete({ org_id: org }))
      const remaining = Effect.flatMap(Exports, (exports) => exports.list(org, null, { limit: 50 }))
      const kept = yield* waitUntil(remaining, ({ entries }) => entries.length < 3, 0)
      expect([whole, own]).not.toContain(kept.value.entries[0]!.id)
      expect(kept.value.entries.map(({ id }) => id)).toEqual([other])
      expect(Object.keys(yield* archive(org, null, other))).toContain("identities.jsonl")
    }),
  )

  /** A worker of the Org with its own export source over these cards. */
  const ownerOf = Effect.fnUntraced(function* (org: string, cards: CardQueries["Service"]) {
    const state = (yield* load)(org)
    const ownership: Ownership.Ownership<OrgState> = yield* Ownership.make({ kind: "Org", id: org, load: state })
    const collecting = yield* ExportSource.source
      .make(ownership)
      .pipe(Effect.provide(Layer.fresh(exportContents)), Effect.provideService(CardQueries, cards))
    const present = yield* ownership.state
    return { collecting, collect: collecting.dispatch(present!, Effect.void, Effect.void) }
  })

  /** Creates an export that no worker has claimed. */
  const queued = Effect.fnUntraced(function* (org: string) {
    const id = yield* makeUuidV7
    const sql = yield* Writes
    yield* sql`
      insert into export (id, org_id, created_at, expires_at) values (${id}, ${org}, now(), now() + interval '7 days')`
    return id
  })

  it.effect("is complete when two owners collect it concurrently", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* filled(org, "alan")
      const id = yield* queued(org)
      const cards = yield* CardQueries
      // Both workers wait at the cards until this is open, so that both are interrupted in the middle.
      const go = Latch.makeUnsafe()
      const held = CardQueries.of({ ...cards, read: (identity) => Effect.andThen(go.await, cards.read(identity)) })
      const former = yield* ownerOf(org, held)
      expect(yield* former.collect).toBe(true)
      yield* waitUntil(statusOf(id), (status) => status === "running", 0)
      const present = yield* ownerOf(org, held)
      expect(yield* present.collect).toBe(true)
      yield* go.open
      const busy = Effect.sync(() => former.collecting.isBusy() || present.collecting.isBusy())
      yield* waitUntil(busy, (isBusy) => !isBusy, 0)
      expect(yield* statusOf(id)).toBe("ready")
      const files = yield* archive(org, null, toPublic("exp_", id))
      expect(lines<Message>(files["messages.jsonl"]).map(({ subject }) => subject)).toEqual(["to alan"])
      expect(lines(files["identities.jsonl"])).toHaveLength(1)
    }),
  )

  it.effect("fails if it cannot be collected, and the next one is complete", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* filled(org, "joan")
      const cards = yield* CardQueries
      const broken = CardQueries.of({ ...cards, read: () => Effect.die(new Error("a card that cannot be read")) })
      const id = yield* queued(org)
      const owner = yield* ownerOf(org, broken)
      yield* owner.collect
      yield* waitUntil(statusOf(id), (status) => status === "failed", 0)
      const failed = toPublic("exp_", id)
      expect(yield* (yield* Exports).read(org, null, failed)).toMatchObject({ status: "failed", download_url: null })
      expect(yield* Effect.flip(archive(org, null, failed))).toMatchObject({ code: "not_found" })
      // The export is not retried automatically.
      yield* waitUntil(Effect.sync(owner.collecting.isBusy), (isBusy) => !isBusy, 0)
      expect(yield* owner.collect).toBe(false)
      const files = yield* archive(org, null, yield* exported(org))
      expect(lines(files["messages.jsonl"])).toHaveLength(1)
      expect(yield* statusOf(id)).toBe("failed")
    }),
  )

  it.effect("is overdue from when it was requested until it is collected or expires", () =>
    Effect.gen(function* () {
      const [org, sql] = [yield* makeOrg, yield* Writes]
      const id = yield* queued(org)
      const [times] = yield* sql<{ from: Date; to: Date }>`
        update export set created_at = date_trunc('second', created_at), expires_at = date_trunc('second', expires_at)
        where id = ${id} returning created_at as "from", expires_at as "to"`
      const overdue = (at: Date, later: number) =>
        Effect.map(ExportSource.source.overdue(sql, new Date(at.getTime() + later), 1_000), (orgs) =>
          orgs.includes(org),
        )
      const { from, to } = times!
      expect(yield* Effect.all([overdue(from, -1), overdue(from, 0), overdue(to, -1), overdue(to, 0)])).toEqual([
        false,
        true,
        true,
        false,
      ])
      yield* sql`update export set status = 'ready' where id = ${id}`
      expect(yield* overdue(from, 0)).toBe(false)
    }),
  )

  it.effect("replaces the oldest of the same account or Identity if there are five", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const ada = yield* filled(org, "ada")
      const own = yield* exported(org, ada)
      const made: Array<string> = []
      for (let n = 0; n < 6; n++) made.unshift(yield* exported(org))
      const { entries } = yield* (yield* Exports).list(org, null, { limit: 10 })
      expect(entries.map(({ id }) => id)).toEqual([...made.slice(0, 5), own])
      expect(yield* rows((sql) => sql`select 1 from export where org_id = ${org}`)).toHaveLength(6)
      // A repeated request replaces none.
      const repeated = { export_id: fromPublic("exp_", made[0]!)!, identity_id: null, handle: null }
      yield* ask((yield* Orgs).of(org).Export(repeated))
      expect((yield* (yield* Exports).list(org, null, { limit: 10 })).entries).toEqual(entries)
    }),
  )

  it.effect("is an invalid zip after an interrupted download, and can be downloaded again", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* filled(org, "barbara")
      const id = yield* exported(org)
      const stream = yield* (yield* Exports).archive(org, null, id, false)
      const half = yield* Stream.runCollect(Stream.take(stream, 4))
      expect(() => unzipSync(new Uint8Array(Buffer.concat([...half])))).toThrow()
      const files = yield* archive(org, null, id)
      expect(lines(files["messages.jsonl"])).toHaveLength(1)
      expect(yield* archive(org, null, id)).toEqual(files)
    }),
  )
})
