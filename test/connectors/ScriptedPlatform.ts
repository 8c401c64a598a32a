/** A platform without a server: each test says what its calls return. */
import { ask } from "@svc/cluster/actor/Ask"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import * as Failure from "@svc/cluster/connectors/platforms/Failure"
import type { Connected, Platform, Session } from "@svc/cluster/connectors/platforms/Platform"
import { Platforms } from "@svc/cluster/connectors/platforms/Platforms"
import { Timing } from "@svc/cluster/Timing"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer, Redacted } from "effect"
import { actors, makeIdentity } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { makeOrg } from "../harness/Stores.ts"
import { connectors } from "./ConnectedIdentity.ts"

type Calls = Pick<
  Platform,
  "authorize" | "disclose" | "finish" | "inspect" | "poll" | "post" | "posts" | "revoke" | "sendDm" | "undisclose"
> & {
  readonly login: () => Effect.Effect<Connected>
}

export const status = {
  account: { name: "ada@platform.example", id: "1", service: "https://platform.example" },
  capabilities: ["post"],
  disclosed: false,
} as const

const connected: Connected = { ...status, via: "app_password", credential: Redacted.make("first") }

const unused = () => Effect.die("not scripted")

const sound: Calls = {
  authorize: unused,
  disclose: () => Effect.succeed(undefined),
  finish: unused,
  post: unused,
  sendDm: unused,
  login: () => Effect.succeed(connected),
  inspect: () => Effect.succeed(status),
  poll: () => Effect.succeed({ received: [], mark: "mark", more: false }),
  posts: () => Effect.succeed({ entries: [], cursor: null }),
  revoke: () => Effect.void,
  undisclose: () => Effect.void,
}

let calls = sound
/** Replaces calls of the platform; all others succeed. */
export const script = (changed: Partial<Calls> = {}): void => void (calls = { ...sound, ...changed })

/** Reads the account's posts with a call that gets the session of the connection. */
export const reading = (use: (session: Session) => Effect.Effect<unknown, never>): Partial<Calls> => ({
  posts: (session) => Effect.as(use(session), { entries: [], cursor: null }),
})

export const failures: {
  /** Failures that say nothing about the credential. */
  readonly passing: ReadonlyArray<readonly [string, Effect.Effect<never, Failure.PlatformFailure>]>
  readonly silence: readonly [string, Effect.Effect<never, Failure.PlatformFailure>]
  readonly refused: Effect.Effect<never, Failure.CredentialRefused>
} = {
  passing: [
    ["a rate limit", Effect.fail(new Failure.PlatformRateLimited({ message: "slow down", until: null }))],
    ["an outage", Effect.fail(new Failure.PlatformUnreachable({ message: "slow down" }))],
    ["a refusal", Effect.fail(new Failure.PlatformRefused({ message: "slow down" }))],
    ["a missing function", Effect.fail(new Failure.Unsupported({ message: "slow down" }))],
    ["a refused input", Effect.fail(new Failure.InputRefused({ message: "slow down", path: "/" }))],
    ["a defect", Effect.die("slow down")],
  ],
  silence: ["no response", Effect.never],
  refused: Effect.fail(new Failure.CredentialRefused({ message: "token expired" })),
}

const platform: Platform = {
  name: "mastodon",
  title: "Mastodon",
  login: () => calls.login(),
  inspect: (session) => calls.inspect(session),
  poll: (session, mark) => calls.poll(session, mark),
  posts: (session, page) => calls.posts(session, page),
  revoke: (session) => calls.revoke(session),
  undisclose: (session, changed) => calls.undisclose(session, changed),
  authorize: (visit, request) => calls.authorize(visit, request),
  finish: (visit, back) => calls.finish(visit, back),
  validate: () => Effect.void,
  post: (session, post) => calls.post(session, post),
  sendDm: (session, post) => calls.sendDm(session, post),
  dms: unused,
  thread: unused,
  notifications: unused,
  disclose: (session) => calls.disclose(session),
  stream: undefined,
}

/** Actors whose Connectors use the scripted platform. Includes the scan for overdue work. */
export const scriptedActors = Overdue.layer(ConnectorWork.watched).pipe(
  Layer.provideMerge(actors({ platforms: Layer.succeed(Platforms, { of: () => Effect.succeed(platform) }) })),
)

export const login = Effect.fnUntraced(function* (handle: string, org_id: string) {
  const message = { org_id, account: "ada", password: "password", apply_disclosure: false }
  yield* ask((yield* connectors(handle)).Login(message), Timing.askPlatform)
})

/** Creates an Org with an Identity that is connected to the platform. */
export const scriptedIdentity = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const { id } = yield* makeIdentity(org_id, handle)
  yield* login(handle, org_id)
  return { org_id, id, handle, actor: yield* connectors(handle) }
})
