/**
 * Mixed use over every protocol through recording proxies. Afterwards each call is compared with the audit log, and the log with the calls.
 * The sequence is the same in every run; `AUDIT_ROUNDS` makes it longer.
 */
import { tools } from "@svc/api/mcp/Tools"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { ImapClient } from "../harness/Imap.ts"
import { converse } from "../harness/Mail.ts"
import { startService, type OwnService } from "../harness/Service.ts"
import { type Expected, expectedOf, hashOf } from "./Expected.ts"
import { recordHttp, recordTcp } from "./Recorder.ts"

const rounds = Number(process.env["AUDIT_ROUNDS"] ?? 120)
const programRounds = Math.max(4, Math.floor(rounds / 40))

let service: OwnService
let session: string
let http: Awaited<ReturnType<typeof recordHttp>>
let imap: Awaited<ReturnType<typeof recordTcp>>
let smtp: Awaited<ReturnType<typeof recordTcp>>
let edge: Awaited<ReturnType<typeof recordTcp>>
beforeAll(async () => {
  // A low limit that the test reaches.
  service = await startService({ env: { SVC_LIMIT_HANDLE_CHECK: "3" } })
  session = (await signUp(service.base)).session
  http = await recordHttp(service.httpPort)
  imap = await recordTcp(service.imapPort)
  smtp = await recordTcp(service.submissionPort)
  edge = await recordTcp(service.edgePort)
})
afterAll(async () => {
  for (const watch of [http, imap, smtp, edge]) watch.stop()
  await service.stop()
})

/** The generator mulberry32, which returns the same numbers in every run. */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

const json = (text: string) => {
  try {
    return JSON.parse(text) as any
  } catch {
    return undefined
  }
}

/** Returns the records that the calls must have caused, and the number of reads by credential and operation. */
const whatWentBy = () => {
  const acts: Array<Expected> = []
  const reads = new Map<string, number>()
  const read = (token: string, action: string, tool: string) => {
    const key = `${hashOf(token)} ${action} ${tool}`
    reads.set(key, (reads.get(key) ?? 0) + 1)
  }
  for (const seen of http.seen) {
    const answer = json(seen.answer)
    if (seen.path !== "/api/mcp") {
      const repeated = seen.headers["idempotent-replayed"] === "true"
      const of = expectedOf(seen, answer?.code ?? null, "rest", repeated)
      acts.push(...of.acts)
      if (of.read !== null) read(seen.token!, of.read, "")
      continue
    }
    const message = json(seen.body)
    const tool = tools.find((one) => one.listed.name === message.params?.name)
    const input = message.params?.arguments ?? {}
    const isCall = tool !== undefined && tool.inPath.every((name) => name in input)
    if (isCall && message.method === "tools/call") {
      const path = tool.path.replace(/:(\w+)/g, (_, name) => input[name])
      const result = answer.result
      const problem = result === undefined ? answer : result.isError === true ? result.structuredContent : undefined
      const of = expectedOf(
        { method: tool.method, path, token: seen.token, status: problem?.status ?? 200 },
        problem?.code ?? null,
        "mcp",
        false,
      )
      acts.push(...of.acts)
      if (of.read !== null) read(seen.token!, of.read, tool.listed.name)
    } else if (seen.token !== undefined && seen.status < 300) {
      read(seen.token, "mcp.exchange", tool?.listed.name ?? "")
    } else if (seen.token !== undefined) {
      const hash = hashOf(seen.token)
      acts.push({ hash, class: "auth", outcome: "refused", action: null, code: answer.code, via: null })
    }
  }
  const came = (hash: string, of: string, action: string, via: string) =>
    acts.push({ hash, class: of, outcome: "allowed", action, code: null, via })
  const refused = (hash: string, of: string, code: string) =>
    acts.push({ hash, class: of, outcome: "refused", action: null, code, via: null })
  /** Returns the key's hash if the password is a key, or else the Mailbox. */
  const whose = (user: string, password: string) =>
    password.startsWith("svc_") ? hashOf(password) : `mailbox ${user.split("@")[0]}`
  for (const { said, answered } of imap.seen) {
    const [, user, password] = /LOGIN "(.*)" "(.*)"/.exec(said)!
    const hash = whose(user!, password!)
    if (/^[a-z0-9]+ OK/im.test(answered)) came(hash, "auth", "imap.login", "imap")
    else refused(hash, "auth", "unauthenticated")
  }
  for (const { said, answered } of smtp.seen) {
    const [, user, password] = Buffer.from(/AUTH PLAIN (\S+)/.exec(said)![1]!, "base64")
      .toString()
      .split("\0")
    const hash = whose(user!, password!)
    if (!/^235 /m.test(answered)) {
      refused(hash, "auth", "unauthenticated")
      continue
    }
    came(hash, "auth", "submission.login", "smtp")
    if (/^250 2\.6\.0 Queued as/m.test(answered)) came(hash, "change", "submission.send", "smtp")
    else if (/^550 5\.7\.1 /m.test(answered)) refused(hash, "change", "recipient_not_allowed")
  }
  for (const { said, answered } of edge.seen) {
    const hash = hashOf(/^authorization: Bearer (\S+)/im.exec(said)![1]!)
    if (answered.startsWith("HTTP/1.1 101")) came(hash, "auth", "tunnel.link", "tunnel")
    else refused(hash, "auth", json(answered.split("\r\n\r\n")[1]!).code)
  }
  return { acts, reads }
}

const summed = (lines: ReadonlyArray<readonly [string, number]>) => {
  const sums = new Map<string, number>()
  for (const [key, count] of lines) sums.set(key, (sums.get(key) ?? 0) + count)
  return Object.fromEntries([...sums].toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

describe("the audit log of mixed traffic", () => {
  it("contains each call and nothing else", async () => {
    const direct = async (method: string, path: string, body?: unknown, token = session) =>
      (await call(service.base, method, path, { token, ...(body === undefined ? {} : { body }) })).body
    const [ada, bob] = [await makeIdentity(service.base, session), await makeIdentity(service.base, session)]
    const at = (who: { handle: string }, path: string) => `/api/identities/${who.handle}${path}`
    await direct("POST", at(ada, "/allowed-recipients"), { address: `${bob.handle}@mail.localhost` })
    const key = async (body: object, path = "/api/keys") => (await direct("POST", path, { name: "one", ...body })).key
    const admin = await key({})
    const narrow = await key({ scopes: ["card:read"] }, at(ada, "/keys"))
    const elsewhere = await key({ networks: ["192.0.2.0/24"] }, at(ada, "/keys"))
    const spare = await Promise.all([0, 1, 2].map(() => key({})))
    const revoked = await direct("POST", at(ada, "/keys"), { name: "old" })
    await direct("DELETE", `/api/keys/${revoked.api_key.id}`)
    const own: string = ada.secrets.identity_key
    const callers = [session, admin, own, own, narrow, elsewhere, revoked.key, "svc_id_nonsense"]
    const before = await service.query<{ id: string }>((sql) => sql`select id from audit`)

    const base = `http://127.0.0.1:${http.port}`
    const rest = (method: string, path: string, token: string, body?: unknown, more: Record<string, string> = {}) =>
      call(base, method, path, { token, ...(body === undefined ? {} : { body }), headers: more })
    const mcp = (token: string, method: string, params: object = {}) =>
      rest("POST", "/api/mcp", token, { jsonrpc: "2.0", id: 1, method, params })
    const tool = (token: string, name: string, input: object) => mcp(token, "tools/call", { name, arguments: input })

    const client = async (seed: number) => {
      const next = random(seed)
      const any = <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)]!
      const made: Array<string> = []
      const ways: ReadonlyArray<(token: string) => Promise<unknown>> = [
        (token) => rest("PATCH", at(any([ada, bob]), "/card"), token, { description: `d${Math.floor(next() * 9)}` }),
        (token) => rest("PATCH", at(ada, "/card"), token, { description: 7 }),
        (token) => rest("GET", at(any([ada, bob]), "/card"), token),
        (token) => rest("GET", at(any([ada, bob]), "/messages"), token),
        (token) => rest("GET", "/api/identities", token),
        (token) => rest("GET", "/api/auth/whoami", token),
        (token) => rest("GET", `/api/handles/free${Math.floor(next() * 1000)}`, token),
        (token) =>
          rest("PUT", `/api/vault/secrets/${any(["one", "two"])}?identity=${ada.handle}`, token, { value: "v" }),
        (token) => rest("GET", `/api/vault/secrets/${any(["one", "two", "none"])}/value?identity=${ada.handle}`, token),
        (token) => rest("GET", `/api/vault/secrets?identity=${ada.handle}`, token),
        (token) => rest("DELETE", `/api/vault/secrets/two?identity=${ada.handle}`, token),
        (token) => rest("POST", at(ada, "/drafts"), token, { to: [], text: "plain" }),
        // Repeats the same request with the same credential, and sometimes another request with the same key.
        () =>
          rest(
            "POST",
            at(ada, "/drafts"),
            own,
            { to: [], text: next() < 0.8 ? "one" : "other" },
            {
              "idempotency-key": `${seed}`,
            },
          ),
        async () => {
          const { body } = await rest(
            "POST",
            "/api/keys",
            admin,
            { name: "made", scopes: ["card:read"] },
            {
              "idempotency-key": `k${seed}-${Math.floor(next() * 2)}`,
            },
          )
          if (body.key !== undefined) made.push(body.api_key.id)
        },
        (token) => {
          const id = made.pop()
          return id === undefined ? Promise.resolve() : rest("DELETE", `/api/keys/${id}`, token)
        },
        (token) => mcp(token, "tools/list"),
        (token) => tool(token, "svc_whoami", {}),
        (token) => tool(token, "svc_card_get", { handle: any([ada, bob]).handle }),
        (token) => tool(token, "svc_card_update", { handle: any([ada, bob]).handle, description: "by a tool" }),
        (token) => tool(token, "svc_email_get", { handle: ada.handle }),
        (token) => tool(token, "svc_nothing", {}),
        (token) => tool(token, "svc_vault_get", { name: "one", identity: ada.handle }),
      ]
      for (let round = 0; round < rounds / 4; round++) await any(ways)(any([...callers, any(spare)]))
    }

    /** Simulates mail programs and agents with few calls, since responses to failed logins are increasingly delayed. */
    const programs = async () => {
      const next = random(99)
      const { username, password } = ada.secrets.smtp
      const letter = (to: string) =>
        `From: <${ada.handle}@mail.localhost>\r\nTo: <${to}>\r\nSubject: Hello\r\n\r\nHello.\r\n`
      const submit = (pass: string, to: string) =>
        converse(smtp.port, [
          "EHLO laptop\r\n",
          `AUTH PLAIN ${Buffer.from(`\0${username}\0${pass}`).toString("base64")}\r\n`,
          `MAIL FROM:<${ada.handle}@mail.localhost>\r\n`,
          `RCPT TO:<${to}>\r\n`,
          "DATA\r\n",
          `${letter(to)}.\r\n`,
          "QUIT\r\n",
        ])
      const enter = (pass: string) =>
        converse(smtp.port, [
          "EHLO laptop\r\n",
          `AUTH PLAIN ${Buffer.from(`\0${username}\0${pass}`).toString("base64")}\r\n`,
          "QUIT\r\n",
        ])
      const login = async (pass: string) => {
        const imapClient = await ImapClient.connect(imap.port)
        await imapClient.say(`LOGIN "${username}" "${pass}"`)
        imapClient.close()
      }
      const link = async (token: string, handle: string) => {
        const tunnel = connectTunnel({
          key: token,
          handle,
          links: 1,
          edge: `http://connect.tunnel.localhost:${edge.port}`,
          client: "test",
          handler: (_: unknown, outgoing: any) => outgoing.end(),
        })
        await tunnel.ready.then(
          () => tunnel.close(),
          () => tunnel.ended,
        )
      }
      const good = [password, own]
      const bad = ["wrong-wrong-wrong", narrow, elsewhere, revoked.key]
      const friend = `${bob.handle}@mail.localhost`
      for (let round = 0; round < programRounds; round++) {
        await login(good[Math.floor(next() * 2)]!)
        await submit(good[Math.floor(next() * 2)]!, next() < 0.5 ? friend : "stranger@example.org")
        await link(own, next() < 0.5 ? ada.handle : bob.handle)
        for (const token of [narrow, elsewhere, revoked.key, "svc_id_nonsense"]) await link(token, ada.handle)
        if (round < bad.length) await (next() < 0.5 ? login : enter)(bad[round]!)
      }
    }
    await Promise.all([client(1), client(2), client(3), client(4), programs()])

    const { acts, reads } = whatWentBy()
    const hashes = await service.query<{ hash: string; id: string }>(
      (sql) => sql`select encode(token_hash, 'hex') as hash, id from api_key
        union all select encode(token_hash, 'hex'), id from session`,
    )
    const idOf = new Map(hashes.map(({ hash, id }) => [hash, id]))
    const nameOf = (hash: string | null) => (hash?.startsWith("mailbox") ? hash : idOf.get(hash ?? ""))
    const line = (who: string, { class: of, outcome, action, code, via }: Omit<Expected, "hash">) =>
      `${who} ${of} ${outcome} ${action ?? "-"} ${code ?? "-"} ${via ?? "-"}`
    // Calls with a credential that never existed belong to no account.
    const expected = summed(
      acts.flatMap((act) => {
        const who = nameOf(act.hash)
        return who === undefined ? [] : [[line(who, act), 1] as const]
      }),
    )
    const kept = before.map(({ id }) => id)
    const recorded = async () => {
      const records = await service.query<any>(
        (sql) => sql`select class, outcome, action, code, via, count, actor_kind, actor_id, handle from audit
          where not (id = any(${kept}::uuid[]))`,
      )
      return summed(
        records.map(({ class: of, outcome, action, code, via, count, actor_kind, actor_id, handle }) => {
          const who = actor_kind === "imap_password" ? `mailbox ${handle}` : actor_id
          const folded = outcome === "refused" || outcome === "repeated"
          const shown = {
            class: of,
            outcome,
            action: folded ? null : action,
            code: outcome === "refused" ? code : null,
            via: folded ? null : via,
          }
          return [line(who, shown), count] as const
        }),
      )
    }
    const total = (sums: Record<string, number>) => Object.values(sums).reduce((sum, one) => sum + one, 0)
    // Records that are counted together are written at the end of their minute or when the process stops.
    await service.leave()
    const found = await recorded()
    expect(found).toEqual(expected)
    expect(total(found)).toBeGreaterThan(rounds / 3)
    // The sequence must have contained these kinds of records.
    for (const met of ["repeated", "idempotency_key_reused", "rate_limited", "tunnel.link", "submission.send"]) {
      expect(
        Object.keys(found).some((one) => one.includes(met)),
        met,
      ).toBe(true)
    }

    const wanted = summed(
      [...reads].flatMap(([key, n]) => {
        const [hash, action, tool] = key.split(" ")
        const who = nameOf(hash!)
        return who === undefined ? [] : [[`${who} ${action} ${tool}`, n] as const]
      }),
    )
    const counted = async () => {
      const usage = await service.query<any>(
        (sql) => sql`select actor_id, action, tool, count::int as n from audit_usage`,
      )
      return summed(usage.map(({ actor_id, action, tool, n }) => [`${actor_id} ${action} ${tool}`, n] as const))
    }
    const seen = await counted()
    // The session also read resources before the recording started.
    const ofSession = idOf.get(hashOf(session))!
    const others = (sums: Record<string, number>) =>
      Object.fromEntries(Object.entries(sums).filter(([one]) => !one.startsWith(ofSession)))
    expect(others(seen)).toEqual(others(wanted))
    expect(total(others(seen))).toBeGreaterThan(rounds / 10)
  })
})
