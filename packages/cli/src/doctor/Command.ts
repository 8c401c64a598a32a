/** `svc doctor`: checks the deployment and suggests fixes. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { explained } from "../client/Connection.ts"
import { apiFlag } from "../client/Flags.ts"
import { formatFlags, respond } from "../client/Format.ts"
import { type Finding, groups } from "./Finding.ts"

const signs = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

const linesOf = ({ name, status, detail, remedy }: Finding): string => {
  const line = `${signs[status]}  ${name}: ${detail}\n`
  return remedy === "" ? line : `${line}      ${remedy}\n`
}

const text = (all: ReadonlyArray<Finding>, verbose: boolean): string => {
  const fine = all.filter(({ status }) => status === "ok")
  const shown = verbose ? all : all.filter(({ status }) => status !== "ok")
  const hint = verbose || fine.length === 0 ? "" : " (svc doctor --all lists them)"
  return `${shown.map(linesOf).join("")}${fine.length} of ${all.length} checks passed${hint}.\n`
}

export const command = Command.make(
  "doctor",
  {
    api: apiFlag,
    ...formatFlags,
    all: Flag.Boolean("all").pipe(Flag.withDescription("Show passed checks too"), Flag.withDefault(false)),
    only: Flag.Literals("only", groups).pipe(
      Flag.withDescription("Group of checks to run; may be repeated"),
      Flag.between(0, groups.length),
    ),
    resolver: Flag.String("resolver").pipe(Flag.withDescription("Address of the name server to query"), Flag.optional),
    outside: Flag.Boolean("outside").pipe(
      Flag.withDescription("Check from another machine what is reachable from there"),
      Flag.withDefault(false),
    ),
  },
  Effect.fnUntraced(function* ({ api, all: verbose, only, resolver, outside, ...format }) {
    // Loaded on demand, because it loads all settings of the service.
    const { findings } = yield* Effect.promise(() => import("./Checks.ts"))
    const all = yield* findings({
      api,
      only: new Set(only),
      resolver: Option.getOrUndefined(resolver),
      fromOutside: outside,
    })
    yield* respond(format, { findings: all }, () => text(all, verbose).trimEnd())
    yield* Effect.sync(() => {
      if (all.some(({ status }) => status === "fail")) process.exitCode = 1
    })
  }, explained),
).pipe(
  Command.withDescription("Check the machine, settings, database, certificates, DNS and service, and suggest fixes."),
)
