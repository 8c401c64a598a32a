/** Handlers that connect an account: with an app password, or with OAuth in two steps. */
import { notReady } from "@svc/domain/identity/NotReady"
import { randomBytes } from "node:crypto"
import { Clock, Effect, Redacted } from "effect"
import { Rpc } from "effect/rpc"
import { byOf, type Request } from "../actor/ActorHandlers.ts"
import type { OwnIdentity } from "../actor/Write.ts"
import { orUnavailable } from "../store/Database.ts"
import * as Authorizations from "./credentials/Authorizations.ts"
import { withTimeout } from "./PlatformCalls.ts"
import * as ConnectionWrites from "./ConnectionWrites.ts"
import type { Connection } from "./ConnectorState.ts"
import { type Actor, requireIdentity, type Tenant } from "./ConnectorHandlers.ts"
import { isFailure, type PlatformFailure, Unsupported } from "./platforms/Failure.ts"
import type { Connected } from "./platforms/Platform.ts"
import * as Refusals from "./Refusals.ts"

export const handlers = (actor: Actor) => {
  const { calls, ownership, sealing, sql } = actor
  const { platform } = calls

  const withProblem = <A, E>(call: Effect.Effect<A, E | PlatformFailure>) =>
    Effect.catchIf(call, isFailure, (failure) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.fail(Refusals.whileConnecting(platform.title, failure, now)),
      ),
    )

  /** Requires a ready Identity. The commit checks the status again. */
  const ready = Effect.fnUntraced(function* (tenant: Tenant) {
    const { identity } = yield* requireIdentity(actor, tenant)
    const [row] = yield* orUnavailable(sql<{ status: string }>`select status from identity where id = ${identity.id}`)
    if (row?.status !== "ready") return yield* notReady(row?.status ?? "gone")
    return identity
  })

  /** Marks the profile as automated and stores what was changed there. */
  const disclose = Effect.fnUntraced(function* (identity: OwnIdentity, connection: Connection) {
    const session = calls.session(identity, connection, true)
    const changed = yield* withTimeout(platform.disclose(session))
    const status = yield* withTimeout(platform.inspect(session))
    yield* calls.change((write, state) => ConnectionWrites.updateAccount(write, state, connection.id, status, changed))
  })

  const connect = Effect.fnUntraced(function* (
    request: Request<Tenant & { readonly apply_disclosure: boolean }>,
    identity: OwnIdentity,
    connected: Connected,
  ) {
    const connection = yield* calls.change(
      (write, state) => ConnectionWrites.connect(write, state, identity, connected, sealing),
      byOf(request),
    )
    if (request.payload.apply_disclosure) yield* withProblem(disclose(identity, connection))
    yield* actor.wake
  })

  return {
    Login: (
      request: Request<
        Tenant & { readonly account: string; readonly password: string; readonly apply_disclosure: boolean }
      >,
    ) =>
      Rpc.fork(
        Effect.gen(function* () {
          const identity = yield* ready(request.payload)
          const { account, password } = request.payload
          if (platform.login === undefined) {
            return yield* withProblem(
              Effect.fail(
                new Unsupported({
                  message: `${platform.title} does not support app passwords. Start with POST .../connectors/${platform.name}/authorize.`,
                }),
              ),
            )
          }
          const login = platform.login(calls.context(identity), { account, password: Redacted.make(password) })
          yield* connect(request, identity, yield* withProblem(withTimeout(login)))
        }),
      ),

    Authorize: (request: Request<Tenant & { readonly account?: string | undefined }>) =>
      Rpc.fork(
        Effect.gen(function* () {
          const identity = yield* ready(request.payload)
          const start = yield* withProblem(
            withTimeout(
              platform.authorize(calls.context(identity), {
                account: request.payload.account,
                state: randomBytes(32).toString("base64url"),
                redirectUri: actor.redirectUri,
              }),
            ),
          )
          const expires_at = yield* ownership.write(byOf(request), (write) =>
            Authorizations.store(write, identity, platform.name, start, sealing),
          )
          return {
            authorization_url: start.url,
            state: start.state,
            expires_at,
            instance_rules: start.instanceRules,
          }
        }),
      ),

    Finish: (
      request: Request<Tenant & { readonly state: string; readonly query: string; readonly apply_disclosure: boolean }>,
    ) =>
      Rpc.fork(
        Effect.gen(function* () {
          const identity = yield* ready(request.payload)
          const { state, query } = request.payload
          // The state is consumed first, so that only one of two concurrent requests continues.
          const pending = yield* ownership.write(byOf(request), (write) =>
            Authorizations.consume(write, identity, platform.name, state, sealing),
          )
          const connected = yield* withProblem(
            withTimeout(
              platform.finish(calls.context(identity), {
                kept: pending,
                state,
                redirectUri: actor.redirectUri,
                query: new URLSearchParams(query),
              }),
            ),
          )
          yield* connect(request, identity, connected)
        }),
      ),
  }
}
