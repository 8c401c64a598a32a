/** The agents of received messages: a claim is stored with the message, and its document decides afterwards. */
import { createServer, type RequestListener } from "node:http"
import { ask } from "@svc/cluster/actor/Ask"
import * as AgentClaims from "@svc/cluster/mail/AgentClaims"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { toPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { documentUrl } from "@svc/domain/proof/DidWeb"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe, it as plain } from "vitest"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

/** A host of DID documents. Returns the DID of its root and the paths that were read. */
const startHost = (respond: RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const read: Array<string> = []
      const server = createServer((request, response) => {
        read.push(request.url!)
        respond(request, response)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, read, did: `did:web:127.0.0.1%3A${(server.address() as { port: number }).port}` }
    }),
    ({ server }) => Effect.sync(() => (server.closeAllConnections(), server.close())),
  )

const verified = { verdict: "verified", spf: "none", dkim: "pass", dmarc: "pass", domain: "agents.example" } as const
const from = { address: "Ada@agents.example", name: "Ada" }

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const { actor, id } = yield* makeIdentity(org_id, handle)
  const queries = yield* MessageQueries
  const receive = Effect.fnUntraced(function* (did: string, author = from.address) {
    const agent_claim = { did, domain: "agents.example" }
    const mail = yield* receivedMail({ from: { ...from, address: author }, origin: verified, agent_claim })
    yield* ask(actor.ReceiveMail(mail))
    return toPublic("msg_", mail.message_id)
  })
  const claims = rows((sql) => sql<{ attempts: number }>`select attempts from agent_claim where identity_id = ${id}`)
  const read = (message: string) => queries.read(id as IdentityId, message)
  return {
    org_id,
    id,
    handle,
    actor,
    receive,
    claims,
    read,
    /** Returns the verdict after all claims were decided. */
    decided: (message: string) =>
      Effect.andThen(
        waitUntil(claims, (found) => found.length === 0),
        Effect.map(read(message), ({ message }) => message.origin),
      ),
    events: rows(
      (sql) => sql<{ data: object }>`
        select data from event where identity_id = ${id} and type = 'email.agent_verified' order by seq`,
    ),
  }
})

layer(actors())("The agent of a received message", (it) => {
  it.effect("is proved by a document that names the sender, which is read once for many messages", () =>
    Effect.gen(function* () {
      const { promise: seen, resolve: see } = Promise.withResolvers<void>()
      const host = yield* startHost((_, response) => {
        response.setHeader("content-type", "application/did+json").setHeader("cache-control", "max-age=600")
        const document = { id: host.did, alsoKnownAs: ["acct:x@y", "mailto:ada@agents.example"] }
        void seen.then(() => response.end(JSON.stringify(document)))
      })
      const { receive, decided, events, read } = yield* makeMailbox("ada")
      const first = yield* receive(host.did)
      const { modseq } = yield* read(first)
      see()
      const origin = yield* decided(first)
      const agent = { did: host.did, domain: "agents.example", checked_at: expect.stringMatching(/Z$/) }
      expect(origin).toEqual({ ...verified, agent })
      // The message changed, so its ETag does.
      expect((yield* read(first)).modseq).toBeGreaterThan(modseq)
      yield* decided(yield* receive(host.did))
      expect(host.read).toEqual(["/.well-known/did.json"])
      expect(yield* events).toEqual([
        { data: { agent, from, email_id: first, message_id: first } },
        { data: expect.objectContaining({ agent }) },
      ])
    }),
  )

  it.effect("is found by the scan for overdue claims, which continues the work of a lost process", () =>
    Effect.gen(function* () {
      const { id, handle, actor } = yield* makeMailbox("overdue")
      const sql = yield* Writes
      const mail = yield* receivedMail({ from, origin: verified })
      yield* ask(actor.ReceiveMail(mail))
      const due = new Date((yield* Clock.currentTimeMillis) + 3_600_000)
      yield* sql`
        insert into agent_claim (message_id, identity_id, did, domain, next_attempt_at)
        values (${mail.message_id}, ${id}, 'did:web:nobody.example', 'nobody.example', ${due})`
      const overdue = (millis: number, atMost: number) =>
        AgentClaims.source.overdue(sql, new Date(due.getTime() + millis), atMost)
      expect([yield* overdue(-1, 10), yield* overdue(0, 0), yield* overdue(0, 10)]).toEqual([[], [], [handle]])
    }),
  )

  it.effect(
    "is not proved by a document that names another address or another DID, is too large, or does not exist",
    () =>
      Effect.gen(function* () {
        const documents: Readonly<Record<string, (did: string) => object>> = {
          "/address/did.json": (id) => ({ id, alsoKnownAs: ["mailto:eve@agents.example", "acct:ada@agents.example"] }),
          "/did/did.json": (id) => ({ id: `${id}x`, alsoKnownAs: ["mailto:ada@agents.example"] }),
          "/large/did.json": (id) => ({ id, alsoKnownAs: ["mailto:ada@agents.example"], more: "x".repeat(64 * 1024) }),
        }
        const host = yield* startHost(({ url }, response) => {
          const document = documents[url!]?.(`${host.did}:${url!.split("/")[1]}`)
          response.statusCode = document === undefined ? 404 : 200
          response.setHeader("content-type", "application/json").end(JSON.stringify(document ?? {}))
        })
        const { receive, decided, events } = yield* makeMailbox("bob")
        for (const name of ["address", "did", "large", "none"]) {
          expect([name, yield* decided(yield* receive(`${host.did}:${name}`))]).toEqual([name, verified])
        }
        expect(host.read).toHaveLength(4)
        expect(yield* events).toEqual([])
      }),
  )

  it.effect("is not proved by a document that cannot be read in three attempts, for which no message waits", () =>
    Effect.gen(function* () {
      const held: Array<() => void> = []
      const host = yield* startHost((_, response) => {
        held.push(() => response.writeHead(503).end())
      })
      const { receive, decided, claims, actor } = yield* makeMailbox("eve")
      // Returns while the host is silent.
      const message = yield* receive(host.did)
      // The clock does not advance while a request is in flight.
      const asked = (count: number) =>
        waitUntil(
          Effect.map(claims, () => held.length),
          (found) => found === count,
          0,
        )
      for (const [attempts, wait] of Timing.agentClaimWaitsMillis.entries()) {
        yield* asked(attempts + 1)
        held.at(-1)!()
        yield* waitUntil(claims, ([claim]) => claim?.attempts === attempts + 1, 0)
        yield* TestClock.adjust(wait)
        // `Overdue` does the same for work that was due long ago.
        yield* ask(actor.Work(undefined, { discard: true }))
      }
      yield* asked(3)
      held.at(-1)!()
      expect(yield* decided(message)).toEqual(verified)
    }),
  )

  it.effect("is proved without a request if it is an Identity of this service, until the Identity's end", () =>
    Effect.gen(function* () {
      const { receive, decided, org_id, handle } = yield* makeMailbox("grace")
      const sender = newHandle("dan")
      const { id: dan } = yield* makeIdentity(org_id, sender)
      const did = `did:web:localhost%3A8080:%40${sender}`
      const author = `${sender}@mail.localhost`
      expect(yield* decided(yield* receive(did, author))).toMatchObject({ agent: { did } })
      expect(yield* decided(yield* receive(`did:web:${sender}.tunnel.localhost%3A8081`, author))).toHaveProperty(
        "agent",
      )
      expect(yield* decided(yield* receive(`did:web:localhost%3A8080:%40${handle}`, author))).toEqual(verified)
      const sql = yield* Writes
      yield* sql`update identity set status = 'deleting' where id = ${dan}`
      expect(yield* decided(yield* receive(did, author))).toEqual(verified)
    }),
  )
})

describe("The document of a DID", () => {
  plain.each([
    ["did:web:a.example", "https://a.example/.well-known/did.json"],
    ["did:web:a.example%3A8443:u:%40ada", "https://a.example:8443/u/@ada/did.json"],
    ["did:web:a.example:%2e%2e", undefined],
    ["did:web:a.example:", undefined],
    ["did:web:a.example%3A99999", undefined],
    ["did:web:a.example/x", undefined],
    ["did:web:a.example:%zz", undefined],
    ["did:web:localhost", "https://localhost/.well-known/did.json"],
  ])("%s is at %s", (did, url) => expect(documentUrl({ environment: "production" }, did)).toBe(url))
})
