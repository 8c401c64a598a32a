/** `svc serve`: runs the service in all roles or the given ones. */
import * as Module from "node:module"
import { type Cause, Effect, Layer, Option, References, Schema } from "effect"
import { requestLine, writesAs, wrongFormat, wrongLevel } from "../Logging.ts"
import { Command, Flag } from "effect/cli"
import { type Role, roles as allRoles } from "./Roles.ts"
import type { Settings } from "./Settings.ts"
import type { Store } from "./Store.ts"

/** Formats the start message: addresses, data directory and next steps. */
const banner = (
  settings: Settings,
  store: Store,
  roles: ReadonlySet<Role>,
  ops: string | undefined,
  pauseSeconds: number,
) => {
  const lines = [
    ...(roles.has("api") ? [`  API        ${settings.baseUrl}`, `  Console    ${settings.baseUrl}/console/`] : []),
    ...(roles.has("mail")
      ? [
          `  SMTP       ${settings.host}:${settings.smtpPort}  (*@${settings.mailDomain})`,
          `  IMAP       ${settings.host}:${settings.imapPort}, by TLS ${settings.imapsPort}`,
          `  Submission ${settings.host}:${settings.submissionPort}, by TLS ${settings.submissionsPort}`,
        ]
      : []),
    ...(roles.has("edge") ? [`  Tunnels    ${settings.host}:${settings.edgePort}  (*.${settings.tunnelDomain})`] : []),
    ...(ops === undefined
      ? []
      : [
          `  Operators  http://${ops}/readyz, /metrics`,
          `  Restarts   one process at a time, each ${pauseSeconds} s after /readyz of the previous one returned 200`,
        ]),
    `  Data       ${store.place}`,
    `  Roles      ${[...roles].join(", ")}${settings.environment === "development" ? "  (development)" : ""}`,
  ]
  const begin =
    roles.has("api") && settings.environment === "development"
      ? [
          "",
          "  Begin with:",
          `    curl -s ${settings.baseUrl}/api/auth/magic-link -H 'content-type: application/json' \\`,
          `      -d '{"email":"you@example.org","tos_accepted":true}'`,
        ]
      : []
  return ["", "The agent identity service is running.", "", ...lines, ...begin, ""].join("\n")
}

/** The service is loaded on demand, because other commands do not need it. */
const modules = Effect.promise(() =>
  Promise.all([
    import("./Serve.ts"),
    import("./Settings.ts"),
    import("./Store.ts"),
    import("./OperatorErrors.ts"),
    import("./Parts.ts"),
    import("./ops/Ops.ts"),
    import("./ops/Readiness.ts"),
    import("./ops/Tracing.ts"),
    import("@svc/api/RequestLog"),
  ]),
)

const serve = Effect.fnUntraced(function* (roles: ReadonlySet<Role>) {
  const [
    Serve,
    { load, portsOf, SettingsInvalid },
    Store,
    { sentence },
    { realParts },
    Ops,
    Readiness,
    Tracing,
    { RequestLog },
  ] = yield* modules
  let settings: Settings | undefined
  yield* Effect.gen(function* () {
    const wrong = wrongLevel(process.env["SVC_LOG_LEVEL"]) ?? wrongFormat(process.env["SVC_LOG_FORMAT"])
    if (wrong !== undefined) return yield* new SettingsInvalid({ message: wrong })
    writesAs([...roles])
    settings = yield* load
    const readiness = Readiness.make()
    const names = [...roles]
    const ops = yield* Ops.open(
      { host: settings.opsHost, port: Option.getOrUndefined(settings.opsPort) },
      names,
      readiness,
    )
    const store = yield* Store.open(settings)
    yield* Layer.launch(
      Serve.layer(settings, store, roles, realParts, readiness).pipe(
        Layer.tap(() =>
          Effect.sync(() => {
            process.stdout.write(`${banner(settings!, store, roles, ops, Readiness.restartPauseSeconds)}\n`)
            // A process that is killed would not store its compile cache.
            Module.flushCompileCache()
          }).pipe(Effect.andThen(Effect.logInfo("ready"))),
        ),
        Layer.provide(Tracing.layer(names, settings.tracedShare)),
        Layer.provide(Layer.succeed(RequestLog, requestLine(yield* References.MinimumLogLevel))),
      ),
    )
  }).pipe(
    Effect.scoped,
    Effect.catchCause((cause): Effect.Effect<never, ServeFailed> => {
      const words = sentence(cause, settings === undefined ? {} : portsOf(settings))
      if (words === undefined) return Effect.failCause(cause as Cause.Cause<never>)
      process.stderr.write(`svc: ${words}\n`)
      return Effect.fail(new ServeFailed({}))
    }),
  )
})

/** The service failed, and the error was already printed. */
class ServeFailed extends Schema.TaggedError<ServeFailed>()("ServeFailed", {}) {}

const roleFlag = Flag.Literals("role", allRoles).pipe(
  Flag.withDescription("Role of this process; may be repeated. Default: all roles."),
  Flag.between(0, allRoles.length),
)

export const command = Command.make("serve", { role: roleFlag }, ({ role }) =>
  serve(new Set(role.length === 0 ? allRoles : role)),
).pipe(Command.withDescription("Run the service with all roles or the given ones."))
