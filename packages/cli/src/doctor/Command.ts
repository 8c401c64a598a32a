/** `svc doctor`: looks at the machine, the configuration and the service, and says what to do. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { apiFlag } from "../account/Commands.ts"

const signs = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

export const command = Command.make(
  "doctor",
  { api: apiFlag, json: Flag.Boolean("json").pipe(Flag.withDefault(false)) },
  Effect.fnUntraced(function* ({ api, json }) {
    // Loaded when it is wanted: it knows every setting of the service.
    const { findings } = yield* Effect.promise(() => import("./Checks.ts"))
    const all = yield* findings(api)
    yield* Effect.sync(() => {
      process.stdout.write(
        json
          ? `${JSON.stringify({ findings: all })}\n`
          : all
              .map(({ name, status, detail, remedy }) => {
                const line = `${signs[status]}  ${name}: ${detail}`
                return remedy === "" ? line : `${line}\n      ${remedy}`
              })
              .map((line) => `${line}\n`)
              .join(""),
      )
      if (all.some(({ status }) => status === "fail")) process.exitCode = 1
    })
  }),
).pipe(Command.withDescription("Check this machine and the configuration, and say what to do."))
