/** The documents of a Mastodon server that the platform reads, and its changes of a profile. */
import { createHash } from "node:crypto"
import { PlatformUnreachable } from "@svc/cluster/connectors/platforms/Failure"
import type { Session } from "@svc/cluster/connectors/platforms/Platform"
import * as Authorization from "@svc/cluster/connectors/platforms/mastodon/Authorization"
import * as Discovery from "@svc/cluster/connectors/platforms/mastodon/Discovery"
import * as Profile from "@svc/cluster/connectors/platforms/mastodon/Profile"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { type Respond, service, visiting } from "./mastodon/RecordedCalls.ts"

describe("an authorization", () => {
  const application = { id: "app", secret: "app secret" }
  const start = (metadata: object | undefined) => {
    const { visit } = visiting(({ url }) =>
      url.endsWith("/.well-known/oauth-authorization-server")
        ? { status: metadata === undefined ? 404 : 200, body: metadata }
        : { body: { client_id: application.id, client_secret: application.secret } },
    )
    const registrations = {
      read: () => Effect.succeed(undefined),
      store: (_: string, kept: unknown) => Effect.succeed(kept),
    }
    const instances = { limits: () => Effect.void, rules: () => Effect.succeed([]) } as any
    const book = { environment: "development", baseUrl: "http://localhost:8080" } as any
    return Effect.map(
      Authorization.authorize({ book } as any, instances)({ ...visit, registrations } as never, {
        account: service,
        state: "state",
        redirectUri: "https://api.example/back",
      }),
      ({ url, kept }) => {
        const { origin, pathname, searchParams } = new URL(url)
        const { verifier, issuer } = JSON.parse(Redacted.value(kept))
        const challenge = searchParams.get("code_challenge")
        const isBound =
          verifier !== undefined && createHash("sha256").update(verifier).digest("base64url") === challenge
        return [origin + pathname, issuer, isBound ? searchParams.get("code_challenge_method") : challenge]
      },
    )
  }

  it.effect("uses the server's own page, and PKCE only if the server has it", () =>
    Effect.gen(function* () {
      const [usual, issuer] = [`${service}/oauth/authorize`, `${service}/`]
      const pkce = { code_challenge_methods_supported: ["plain", "S256"] }
      for (const [metadata, expected] of [
        [undefined, [usual, undefined, null]],
        [{}, [usual, undefined, null]],
        [{ issuer, code_challenge_methods_supported: ["plain"] }, [usual, issuer, null]],
        [{ issuer, ...pkce, authorization_endpoint: `${service}/a` }, [`${service}/a`, issuer, "S256"]],
        [{ ...pkce, authorization_endpoint: "https://evil.example/oauth/authorize" }, [usual, undefined, "S256"]],
        [{ authorization_endpoint: `${service}.evil.example/a` }, [usual, undefined, null]],
        [{ authorization_endpoint: "/a" }, [usual, undefined, null]],
      ] as const)
        expect([metadata, yield* start(metadata)]).toEqual([metadata, expected])
    }),
  )
})

describe("the limits of a Mastodon server", () => {
  const read = (instance: object, at = service) =>
    Discovery.makeInstances().limits(visiting(() => ({ body: instance })).http, at)
  const usual = {
    domain: "social.example",
    characters: 500,
    perUrl: 23,
    attachments: 4,
    imageBytes: 16 * 1024 * 1024,
    mimeTypes: undefined,
    idempotent: false,
    streaming: undefined,
  }

  it.effect("are Mastodon's own if the server says nothing, and otherwise within bounds", () =>
    Effect.gen(function* () {
      expect(yield* read({})).toEqual(usual)
      const stated = (statuses: object, media: object = {}) => ({
        configuration: { statuses, media_attachments: media },
      })
      expect(
        yield* read(
          stated(
            { max_characters: 1000.7, max_media_attachments: 2, characters_reserved_per_url: 30 },
            { image_size_limit: 5, supported_mime_types: ["image/png"] },
          ),
        ),
      ).toEqual({
        ...usual,
        characters: 1000,
        attachments: 2,
        perUrl: 30,
        imageBytes: 5,
        mimeTypes: new Set(["image/png"]),
      })
      const wide = { max_characters: 1e9, max_media_attachments: 1e9, characters_reserved_per_url: 1e9 }
      expect(yield* read(stated(wide, { image_size_limit: 1e12, supported_mime_types: [] }))).toEqual({
        ...usual,
        characters: 100_000,
        attachments: 16,
        perUrl: 1_000,
        imageBytes: 2 ** 30,
      })
      const below = { max_characters: -1, max_media_attachments: -1, characters_reserved_per_url: -1 }
      expect(yield* read(stated(below, { image_size_limit: -1 }))).toMatchObject({
        characters: 1,
        attachments: 0,
        perUrl: 0,
        imageBytes: 0,
      })
      expect(yield* read({ max_toot_chars: 7 })).toMatchObject({ characters: 7 })
      const types = Array.from({ length: 101 }, (_, n) => `image/${n}`)
      expect((yield* read(stated({}, { supported_mime_types: types }))).mimeTypes?.size).toBe(100)
      expect(yield* Effect.flip(read({ configuration: "none" }))).toMatchObject({ _tag: "PlatformUnreachable" })
    }),
  )

  it.effect("name the domain of its accounts and its stream, which is encrypted like the server", () =>
    Effect.gen(function* () {
      for (const [instance, domain] of [
        [{ domain: "example.org" }, "example.org"],
        [{ uri: "https://example.org/x" }, "example.org"],
        [{ domain: "example.org", uri: "other.example" }, "example.org"],
        [{ domain: "//" }, "social.example"],
      ] as const)
        expect([instance, (yield* read(instance)).domain]).toEqual([instance, domain])
      const streaming = (url: string, at = service) =>
        Effect.map(read({ configuration: { urls: { streaming: url } } }, at), (limits) => limits.streaming)
      expect(yield* streaming("wss://stream.example/x")).toBe("https://stream.example")
      expect(yield* streaming("ws://stream.example")).toBeUndefined()
      expect(yield* streaming("ws://stream.example:1", "http://social.example")).toBe("http://stream.example:1")
      expect(yield* streaming("nonsense")).toBeUndefined()
      expect((yield* read({ urls: { streaming_api: "wss://old.example" } })).streaming).toBe("https://old.example")
    }),
  )

  it.effect.each([
    ["4.3.0", true],
    ["4.3.0+glitch", true],
    ["2.7.2 (compatible; Pleroma 2.5)", true],
    ["2.7.2 (compatible; Akkoma 3)", true],
    ["0.17.0", false],
    ["2.7.2 (compatible; snac/2)", false],
    ["2.7.2 (not Pleromax)", false],
  ] as const)("%s supports idempotency keys: %s", ([version, idempotent]) =>
    Effect.map(read({ version }), (limits) => expect(limits.idempotent).toBe(idempotent)),
  )

  it.effect("are read once an hour, from version 1 of the document if there is no version 2", () =>
    Effect.gen(function* () {
      const instances = Discovery.makeInstances()
      const { http, sent } = visiting(({ url }) =>
        url.endsWith("/v2/instance") ? { status: 404 } : { body: { max_toot_chars: 9 } },
      )
      const paths = () => sent.splice(0).map(({ url }) => url.slice(service.length))
      expect((yield* instances.limits(http, service)).characters).toBe(9)
      const both = ["/api/v2/instance", "/api/v1/instance"]
      expect(paths()).toEqual(both)
      yield* TestClock.adjust(3_600_000 - 1)
      yield* instances.limits(http, service)
      expect(paths()).toEqual([])
      yield* TestClock.adjust(1)
      yield* instances.limits(http, service)
      expect(paths()).toEqual(both)
      yield* instances.limits(http, "https://other.example")
      expect(sent).toHaveLength(2)
      // A server that is down says nothing, so its answer is not kept.
      const down = visiting(() => new PlatformUnreachable({ message: "down" }))
      expect(yield* Effect.flip(instances.limits(down.http, "https://down.example"))).toMatchObject({ message: "down" })
      expect(down.sent).toHaveLength(1)
    }),
  )

  it.effect("do not include its rules, which are cut", () =>
    Effect.gen(function* () {
      const rules = (body: unknown, status = 200) =>
        Discovery.makeInstances().rules(visiting(() => ({ status, body })).http, service)
      expect(
        yield* rules([
          { id: "1", text: "Be kind.", hint: "" },
          { id: 2 },
          { id: "3".repeat(101), text: "x".repeat(2_001), hint: "y".repeat(2_001) },
        ]),
      ).toEqual([
        { id: "1", text: "Be kind.", hint: null },
        { id: "3".repeat(100), text: "x".repeat(2_000), hint: "y".repeat(2_000) },
      ])
      expect(yield* rules({}, 404)).toEqual([])
      expect(yield* rules({ not: "a list" })).toEqual([])
    }),
  )
})

describe("the profile of an automated account", () => {
  const line = "Automated."
  const changing = <A>(
    before: { bot: boolean; note?: string | undefined },
    run: (session: Session) => Effect.Effect<A, any>,
    longest = Infinity,
  ) => {
    const updates: Array<Record<string, string>> = []
    const respond: Respond = ({ method, body }) => {
      if (method === "PATCH") {
        const change = Object.fromEntries(new URLSearchParams(body))
        updates.push(change)
        if ((change["note"] ?? "").length > longest) return { status: 422, body: { error: "too long" } }
      }
      return {
        body: {
          id: "1",
          username: "ada",
          acct: "ada",
          bot: before.bot,
          ...(before.note === undefined ? {} : { source: { note: before.note } }),
        },
      }
    }
    const { visit } = visiting(respond)
    const credential = Effect.succeed(
      Redacted.make(JSON.stringify({ token: "t", application: { id: "a", secret: "s" } })),
    )
    const session = { ...visit, account: { service }, credential } as unknown as Session
    return Effect.map(run(session), (answer) => ({ answer, updates }))
  }

  it.effect("gets the flag and the line that it does not have yet", () =>
    Effect.gen(function* () {
      const disclose = (before: { bot: boolean; note?: string }, longest?: number) =>
        Effect.map(changing(before, Profile.disclose(line), longest), ({ answer, updates }) => [
          answer === undefined ? undefined : JSON.parse(answer as string),
          updates,
        ])
      expect(yield* disclose({ bot: false })).toEqual([{ bot: true, line }, [{ bot: "true", note: line }]])
      expect(yield* disclose({ bot: false, note: "I compute. \n" })).toEqual([
        { bot: true, line },
        [{ bot: "true", note: `I compute.\n\n${line}` }],
      ])
      expect(yield* disclose({ bot: true, note: "I compute." })).toEqual([
        { bot: false, line },
        [{ bot: "true", note: `I compute.\n\n${line}` }],
      ])
      expect(yield* disclose({ bot: false, note: line })).toEqual([{ bot: true, line: null }, [{ bot: "true" }]])
      expect(yield* disclose({ bot: true, note: `a ${line} b` })).toEqual([undefined, []])
      // The line does not fit, so only the flag is set.
      const long = { note: "x".repeat(490) }
      expect(yield* disclose({ bot: false, ...long }, 500)).toEqual([
        { bot: true, line: null },
        [{ bot: "true", note: `${long.note}\n\n${line}` }, { bot: "true" }],
      ])
      expect((yield* disclose({ bot: true, ...long }, 500))[0]).toBeUndefined()
    }),
  )

  it.effect("loses exactly what the disclosure added and is still there", () =>
    Effect.gen(function* () {
      const undisclose = (before: { bot: boolean; note?: string }, bot: boolean, added: string | null) =>
        Effect.map(
          changing(before, (session) => Profile.undisclose(session, JSON.stringify({ bot, line: added }))),
          ({ updates }) => updates,
        )
      const note = `I compute.\n\n${line}`
      expect(yield* undisclose({ bot: true, note }, true, line)).toEqual([{ bot: "false", note: "I compute." }])
      expect(yield* undisclose({ bot: true, note }, false, line)).toEqual([{ note: "I compute." }])
      expect(yield* undisclose({ bot: true, note }, true, null)).toEqual([{ bot: "false" }])
      expect(yield* undisclose({ bot: true, note: "mine" }, true, line)).toEqual([{ bot: "false" }])
      expect(yield* undisclose({ bot: false, note: "mine" }, true, line)).toEqual([])
      expect(yield* undisclose({ bot: false }, false, line)).toEqual([])
    }),
  )
})
