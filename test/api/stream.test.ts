import * as ResourceChanges from "@svc/api/events/ResourceChanges"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { scopesOf } from "@svc/domain/account/Scope"
import { Effect, Stream } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})

/** Opens a stream of Server-Sent Events and collects its Events. */
const listen = async (path: string, token: string, headers: Record<string, string> = {}) => {
  const controller = new AbortController()
  const response = await fetch(`${service.base}${path}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: controller.signal,
  })
  const events: Array<{ id: string; type: string; event: any }> = []
  let ended = false
  let last = ""
  const read = async () => {
    let text = ""
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(text.slice(0, end))?.[1] ?? ""
        if (field("id") !== "") last = field("id")
        if (field("data") !== "")
          events.push({ id: field("id"), type: field("event"), event: JSON.parse(field("data")) })
        text = text.slice(end + 2)
      }
    }
  }
  const done = read()
    .catch(() => {})
    .finally(() => (ended = true))
  return { response, events, isEnded: () => ended, lastId: () => last, stop: async () => (controller.abort(), done) }
}
const turn = (outgoing: string) =>
  call(service.base, "PATCH", `/api/identities/${ada.handle}/mail`, { token: session, body: { outgoing } })

it("A stream of changes says that some may have been missed, and leaves out what its reader may not read", async () => {
  const found: ReadonlyArray<unknown> = [
    [{ resource: "vault", handle: null }],
    undefined,
    [
      { resource: "vault", handle: null },
      { resource: "webhooks", handle: "ada" },
    ],
  ]
  let at = 0
  const resources = () =>
    Effect.succeed({
      recent: [{ resource: "deliveries", handle: "ada" }],
      await: Effect.suspend(() => (at < found.length ? Effect.succeed(found[at++]) : Effect.never)),
    })
  const reader = { org: { id: "org" }, scopes: scopesOf("webhook:read") } as never
  const chunks = await Effect.runPromise(
    Effect.flatMap(ResourceChanges.make, ({ open }) => open(reader)).pipe(
      Effect.flatMap((stream) => Stream.runCollect(Stream.take(stream, 3))),
      Effect.scoped,
      Effect.provideService(ChangeFeed, { resources } as never),
    ),
  )
  const changed = (changes: unknown) => `event: changed\ndata: ${JSON.stringify({ changes })}\n\n`
  expect([...chunks].map((chunk) => Buffer.from(chunk).toString())).toEqual([
    changed([{ resource: "deliveries", handle: "ada" }]),
    changed(null),
    changed([{ resource: "webhooks", handle: "ada" }]),
  ])
})

describe("Event stream", () => {
  it("delivers Events and resumes after a disconnect", async () => {
    const first = await listen("/api/events/stream", session)
    const headers = Object.fromEntries(first.response.headers)
    // A proxy keeps nothing back, and the connection ends with the stream.
    expect(headers).toMatchObject({ "cache-control": "no-store", "x-accel-buffering": "no", connection: "close" })
    expect(headers["content-type"]).toContain("text/event-stream")
    await turn("stopped")
    await eventually(
      async () => first.events.length,
      (count) => count === 1,
    )
    expect(first.events[0]).toMatchObject({ type: "mail.stopped", event: { type: "mail.stopped", handle: ada.handle } })
    expect(first.events[0]!.id).toBe(first.events[0]!.event.id)
    await first.stop()
    await turn("active")
    await turn("stopped")
    const second = await listen("/api/events/stream", session, { "last-event-id": first.events[0]!.id })
    await eventually(
      async () => second.events.length,
      (count) => count === 2,
    )
    expect(second.events.map(({ type }) => type)).toEqual(["mail.started", "mail.stopped"])
    await second.stop()
  })

  it("of one Identity accepts its own key and no other Org", async () => {
    const other = await makeIdentity(service.base, session)
    const path = `/api/identities/${ada.handle}/events/stream`
    const own = await listen(path, ada.secrets.identity_key)
    await call(service.base, "PATCH", `/api/identities/${other.handle}/mail`, {
      token: session,
      body: { outgoing: "stopped" },
    })
    await turn("active")
    await eventually(
      async () => own.events.length,
      (count) => count > 0,
    )
    expect(own.events.map(({ event }) => event.handle)).toEqual([ada.handle])
    await own.stop()
    await turn("stopped")
    const resumed = await listen(path, ada.secrets.identity_key, { "last-event-id": own.events[0]!.id })
    await eventually(
      async () => resumed.events.map(({ type }) => type),
      ([type]) => type === "mail.stopped",
    )
    await resumed.stop()
    await turn("active")
    const list = path.replace("/stream", "?limit=200")
    const { events } = (await call(service.base, "GET", list, { token: ada.secrets.identity_key })).body
    expect(new Set(events.map(({ handle }: { handle: string }) => handle))).toEqual(new Set([ada.handle]))
    expect((await call(service.base, "GET", path, { token: other.secrets.identity_key })).body.code).toBe(
      "foreign_identity",
    )
    expect((await call(service.base, "GET", path, { token: (await signUp(service.base)).session })).status).toBe(404)
    expect((await call(service.base, "GET", "/api/events/stream", { token: ada.secrets.identity_key })).body.code).toBe(
      "org_scope_required",
    )
  })

  it("sends changed resources on request, only those that the credential may read", async () => {
    const narrow = await call(service.base, "POST", "/api/keys", {
      token: session,
      body: { name: "webhooks only", scopes: ["event:read", "webhook:read"] },
    })
    const [plain, full, limited] = await Promise.all([
      listen("/api/events/stream", session),
      listen("/api/events/stream?changes=true", session),
      listen("/api/events/stream?changes=true", narrow.body.key),
    ])
    const seen = ({ events }: typeof full) =>
      events.filter(({ type }) => type === "changed").flatMap(({ event }) => event.changes)
    const path = `/api/identities/${ada.handle}/webhooks`
    await call(service.base, "PUT", "/api/vault/secrets/a", { token: session, body: { value: "1" } })
    const made = await call(service.base, "POST", path, {
      token: ada.secrets.identity_key,
      body: { url: "http://127.0.0.1:9/", event_types: ["*"] },
    })
    expect(made.status).toBe(201)
    const webhooks = { resource: "webhooks", handle: ada.handle }
    await eventually(
      async () => [seen(full), seen(limited)],
      (all) => all.every((changes) => changes.some(({ resource }) => resource === "webhooks")),
    )
    expect(seen(full)).toContainEqual(webhooks)
    expect(seen(full)).toContainEqual({ resource: "vault", handle: null })
    expect(seen(limited)).toContainEqual(webhooks)
    expect(seen(limited).filter(({ resource }) => resource === "vault")).toEqual([])
    // A refused call changes nothing.
    const before = seen(full).length
    expect((await call(service.base, "POST", path, { token: session, body: {} })).status).toBe(400)
    const missing = `${path}/wh_01kjr8xr3v7k2t9m4q6w8y0zab`
    for (const headers of [{}, { "idempotency-key": "missing" }, { "idempotency-key": "missing" }])
      expect((await call(service.base, "DELETE", missing, { token: session, headers })).status).toBe(404)
    await call(service.base, "DELETE", "/api/vault/secrets/a", { token: session })
    await eventually(
      async () => seen(full).slice(before),
      (changes) => changes.length > 0,
    )
    expect(seen(full).slice(before)).toEqual([{ resource: "vault", handle: null }])
    await eventually(
      async () => full.events.some(({ type }) => type === "beat"),
      (has) => has,
    )
    expect(plain.events.filter(({ type }) => type === "changed" || type === "beat")).toEqual([])
    await Promise.all([plain.stop(), full.stop(), limited.stop()])
  })

  it("ends when its credential is revoked", async () => {
    const minted = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "listener" } })
    const stream = await listen("/api/events/stream", minted.body.key)
    await call(service.base, "DELETE", `/api/keys/${minted.body.api_key.id}`, { token: session })
    await eventually(
      async () => stream.isEnded(),
      (ended) => ended,
      5,
    )
  })

  it("starts with the id of the newest Event, so that a client that disconnects early misses nothing", async () => {
    const newest = (await call(service.base, "GET", "/api/events?limit=1", { token: session })).body.events[0].id
    const first = await listen("/api/events/stream", session)
    await eventually(
      async () => first.lastId(),
      (id) => id === newest,
    )
    expect(first.events).toEqual([])
    await first.stop()
    await turn("stopped")
    await turn("active")
    const second = await listen("/api/events/stream", session, { "last-event-id": newest })
    await eventually(
      async () => second.events.length,
      (count) => count === 2,
    )
    expect(second.lastId()).toBe(second.events[1]!.id)
    await second.stop()
    // The stream of one Identity starts after the newest Event of that Identity.
    const own = await listen(`/api/identities/${ada.handle}/events/stream`, ada.secrets.identity_key)
    await eventually(
      async () => own.lastId(),
      (id) => id === second.events[1]!.id,
    )
    await own.stop()
  })

  it("resumes after an Event that was deleted with its Identity", async () => {
    const mine = await makeIdentity(service.base, session)
    const stream = await listen("/api/events/stream", session)
    await call(service.base, "PATCH", `/api/identities/${mine.handle}/mail`, {
      token: session,
      body: { outgoing: "stopped" },
    })
    // The Event `identity.ready` may also arrive.
    const stopped = await eventually(
      async () => stream.events.find(({ type }) => type === "mail.stopped"),
      (event) => event !== undefined,
    )
    await stream.stop()
    await turn("stopped")
    await call(service.base, "DELETE", `/api/identities/${mine.handle}`, { token: session })
    await eventually(
      () => call(service.base, "GET", `/api/events/${stopped!.id}`, { token: session }),
      ({ status }) => status === 404,
    )
    const repeated = await listen("/api/events/stream", session, { "last-event-id": stopped!.id })
    expect(repeated.response.status).toBe(200)
    const came = await eventually(
      async () => repeated.events.map(({ type }) => type),
      (types) => types.includes("identity.deleted"),
    )
    expect(came.lastIndexOf("mail.stopped")).toBeGreaterThanOrEqual(0)
    await repeated.stop()
    await turn("active")
  })

  it("ends when its account is being deleted", async () => {
    const leaving = await signUp(service.base)
    const stream = await listen("/api/events/stream", leaving.session)
    const deletion = await call(service.base, "POST", "/api/account/deletion", {
      token: leaving.session,
      body: { confirm: leaving.email },
    })
    expect(deletion.status).toBe(202)
    await eventually(
      async () => stream.isEnded(),
      (ended) => ended,
      5,
    )
  })

  it("rejects an unknown Event id as its start", async () => {
    const none = await call(service.base, "GET", "/api/events/stream", {
      token: session,
      headers: { "last-event-id": "evt_nonsense" },
    })
    expect(none.status).toBe(404)
    const stranger = (await signUp(service.base)).session
    const [known] = (await call(service.base, "GET", "/api/events?limit=1", { token: session })).body.events
    const foreign = await call(service.base, "GET", "/api/events/stream", {
      token: stranger,
      headers: { "last-event-id": known.id },
    })
    expect(foreign.status).toBe(404)
  })
})
