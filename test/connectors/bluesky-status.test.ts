/** The status of an account on Bluesky while its services fail. The library runs; the test answers its requests in memory. */
import * as AccountStatus from "@svc/cluster/connectors/platforms/bluesky/AccountStatus"
import * as Connection from "@svc/cluster/connectors/platforms/bluesky/Connection"
import * as Credential from "@svc/cluster/connectors/platforms/bluesky/Credential"
import type { Network } from "@svc/cluster/connectors/platforms/bluesky/Network"
import type { Session } from "@svc/cluster/connectors/platforms/Platform"
import * as PlatformHttp from "@svc/cluster/connectors/platforms/PlatformHttp"
import { unrestricted } from "@svc/cluster/net/SendPermission"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"

type Answer = readonly [status: number, body: object]

const did = "did:plc:own"
const service = "https://pds.example"
const pds = new URL(service)
const active: Answer = [200, { did, handle: "ada.example", active: true }]
const down: Answer = [502, { error: "UpstreamFailure", message: "down" }]
const usual: Readonly<Record<string, Answer>> = {
  "chat.bsky.convo.listConvos": [200, { convos: [] }],
  "com.atproto.server.createSession": [200, { did, handle: "ada.example", accessJwt: "a", refreshJwt: "r" }],
  "com.atproto.server.deleteSession": [200, {}],
  "com.atproto.server.getSession": active,
  "com.atproto.repo.getRecord": [400, { error: "RecordNotFound", message: "none" }],
}
const network = {
  endpoints: { chat: "did:web:chat.example" },
  resolve: () => Effect.succeed({ did, handle: "ada.example", pds }),
} as unknown as Network

/** Returns an HTTP client that gives these answers, and the names of the calls. */
const httpOf = (answers: Readonly<Record<string, Answer>>) => {
  const called: Array<string> = []
  const ask = (url: URL) =>
    Effect.sync(() => {
      const name = url.pathname.slice("/xrpc/".length)
      called.push(name)
      const [status, body] = { ...usual, ...answers }[name]!
      const headers = new Headers({ "content-type": "application/json" })
      return { status, headers, body: Buffer.from(JSON.stringify(body)) }
    })
  return { http: PlatformHttp.make({ ask } as never, unrestricted), called }
}

describe("the status of an account", () => {
  const inspected = (answers: Readonly<Record<string, Answer>>, noted?: string) => {
    const notes = new Map(noted === undefined ? [] : [["dm", noted]])
    const tokens = {
      kind: "app_password",
      service,
      did,
      handle: "ada.example",
      accessJwt: "a",
      refreshJwt: "r",
    } as const
    const session = {
      http: httpOf(answers).http,
      account: { id: did, name: "ada.example", service },
      credential: Effect.succeed(Credential.seal(tokens)),
      notes: {
        read: (name: string) => Effect.sync(() => notes.get(name)),
        write: (name: string, text: string) => Effect.sync(() => void notes.set(name, text)),
      },
    } as unknown as Session
    return Effect.map(AccountStatus.inspect(network, session), ({ account, capabilities, disclosed }) => ({
      account,
      disclosed,
      mayDm: capabilities.includes("dm"),
      note: notes.get("dm"),
    }))
  }

  it.effect.each<[string, Answer, string | undefined, boolean, string | undefined]>([
    ["may", [200, { convos: [] }], undefined, true, "true"],
    ["may again", [200, { convos: [] }], "false", true, "true"],
    ["has no scope for it", [403, { error: "InsufficientScope", message: "no" }], "true", false, "false"],
    ["is refused", [400, { error: "InvalidRequest", message: "no" }], "true", false, "false"],
    ["may, and the chat is down", down, "true", true, "true"],
    ["may not, and the chat is down", down, "false", false, "false"],
    ["is unknown, and the chat is down", down, undefined, false, undefined],
    ["may, and the chat is busy", [429, { error: "RateLimitExceeded", message: "slow" }], "true", true, "true"],
  ])(
    "has direct messages as the chat service says, or as it said before an outage: %s",
    ([, chat, noted, mayDm, note]) =>
      Effect.gen(function* () {
        const account = { name: "ada.example", id: did, service }
        expect(yield* inspected({ "chat.bsky.convo.listConvos": chat }, noted)).toEqual({
          account,
          disclosed: false,
          mayDm,
          note,
        })
      }),
  )

  it.effect("is refused for another account's session and for an account that is not active, not for an outage", () =>
    Effect.gen(function* () {
      const getSession = (body: object) => ({ "com.atproto.server.getSession": [200, body] as const })
      for (const [answers, failure] of [
        [
          getSession({ did: "did:plc:other", handle: "bob.example" }),
          { _tag: "CredentialRefused", message: "The session belongs to another account." },
        ],
        [
          getSession({ did, handle: "ada.example", active: false, status: "suspended" }),
          { _tag: "CredentialRefused", message: "The account is suspended at its server." },
        ],
        [
          getSession({ did, handle: "ada.example", active: false }),
          { _tag: "CredentialRefused", message: "The account is not active at its server." },
        ],
        [{ "com.atproto.server.getSession": down }, { _tag: "PlatformUnreachable" }],
        [{ "com.atproto.repo.getRecord": down }, { _tag: "PlatformUnreachable" }],
      ] as const)
        expect(yield* Effect.flip(inspected(answers))).toMatchObject(failure)
      expect(yield* inspected(getSession({ did, handle: "ada.example" }))).toMatchObject({ mayDm: true })
    }),
  )
})

it.effect("the server of an account that was connected by OAuth is the token's audience, not its issuer", () =>
  Effect.gen(function* () {
    const tokenSet = { iss: "https://entryway.example", aud: service, sub: did }
    const client = { restore: async () => ({ fetchHandler: () => {} }) }
    const session = {
      http: httpOf({}).http,
      account: { id: did, name: "ada.example", service },
      credential: Effect.succeed(Credential.seal({ kind: "oauth", saved: { dpopJwk: {}, tokenSet } } as never)),
      notes: { read: () => Effect.void },
    } as unknown as Session
    const found = yield* Connection.using({ client: () => Effect.succeed(client) } as never, session, (connection) =>
      Effect.succeed([connection.did, connection.service]),
    )
    expect(found).toEqual([did, service])
  }),
)

describe("an app password", () => {
  const login = (answers: Readonly<Record<string, Answer>>, account = " @ada.example ") => {
    const { http, called } = httpOf(answers)
    const given = { account, password: Redacted.make("secret") }
    return Effect.map(Effect.result(AccountStatus.login(network, { http } as never, given)), (result) => ({
      result,
      called,
    }))
  }

  it.effect("opens a session, which is ended if its status cannot be read", () =>
    Effect.gen(function* () {
      const { result, called } = yield* login({})
      expect(result).toMatchObject({ success: { account: { id: did }, via: "app_password" } })
      expect(called).not.toContain("com.atproto.server.deleteSession")
      const failed = yield* login({ "com.atproto.server.getSession": down })
      expect(failed.result).toMatchObject({ failure: { _tag: "PlatformUnreachable" } })
      expect(failed.called.at(-1)).toBe("com.atproto.server.deleteSession")
      // The chat does not decide about the session.
      const silent = yield* login({ "chat.bsky.convo.listConvos": down })
      expect(silent.result).toMatchObject({ success: { capabilities: ["post", "reply", "thread", "notifications"] } })
    }),
  )

  it.effect("that is wrong is refused whatever the server calls it; another failure of the server is not", () =>
    Effect.gen(function* () {
      const answer = (status: number) => ({
        "com.atproto.server.createSession": [status, { error: "Whatever", message: "wrong" }] as const,
      })
      expect((yield* login(answer(401))).result).toMatchObject({
        failure: { _tag: "CredentialRefused", message: "wrong" },
      })
      expect((yield* login(answer(500))).result).toMatchObject({ failure: { _tag: "PlatformUnreachable" } })
      for (const account of ["ada", "ada@example.org", "did:key:x", "", "a b.c"])
        expect((yield* login({}, account)).result).toMatchObject({
          failure: { _tag: "InputRefused", path: "/account" },
        })
      for (const account of ["did:plc:own", "did:web:ada.example"])
        expect((yield* login({}, account)).result).toMatchObject({ success: { account: { id: did } } })
    }),
  )
})
