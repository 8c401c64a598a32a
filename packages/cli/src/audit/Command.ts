/** `svc audit` shows the audit log; `svc audit verify` verifies an export against its seals. */
import { createReadStream, readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import type { AuditRecord } from "@svc/domain/audit/AuditRecord"
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { apiFlag } from "../client/Flags.ts"
import { call, connect, explained, Misused, understood } from "../client/Connection.ts"
import { type Format, formatFlags, respond } from "../client/Format.ts"

/** The schema of records and their sentences, which other commands do not need. */
const records = Effect.promise(async () => {
  const [{ AuditRecord }, { auditSentence }, { dateOf }] = await Promise.all([
    import("@svc/domain/audit/AuditRecord"),
    import("@svc/domain/audit/AuditSentences"),
    import("@svc/domain/mail/SearchQuery"),
  ])
  const Page = Schema.Struct({ records: Schema.Array(AuditRecord), next_cursor: Schema.NullOr(Schema.String) })
  return { readPage: Schema.decodeUnknownEffect(Page), auditSentence, dateOf }
})

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Maximum number of records to print; an export contains all. */
const shownAtMost = 1_000

/**
 * Parses a day, a time or a duration before now: `90m`, `1d`, `2026-11-22`, `2026-11-22T00:00:00Z`. Returns undefined
 * for anything else.
 */
const timeOf = (text: string, now: number, dateOf: (text: string) => number): Date | undefined => {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const millis = unit === undefined ? dateOf(text) : now - Number(count) * units[unit]!
  return Number.isNaN(millis) ? undefined : new Date(millis)
}

const misused = (message: string) => new Misused({ message })

const lineOf = (record: AuditRecord, sentence: string): string => {
  const { at, code, source } = record
  const by = source.tool === null ? source.via : `${source.via}:${source.tool}`
  return `${at.toISOString()}  ${sentence}${code === null ? "" : ` (${code})`}  ${by}, ${source.address ?? "-"}`
}

const list = Effect.fnUntraced(function* (
  flags: { readonly api: Option.Option<string>; readonly since: string } & Format,
) {
  const now = yield* Clock.currentTimeMillis
  const { readPage, auditSentence, dateOf } = yield* records
  const since = timeOf(flags.since, now, dateOf)
  if (since === undefined)
    return yield* misused(
      `--since takes a day (2026-11-22), a time (2026-11-22T00:00:00Z) or a duration (1d, 90m), not ${flags.since}`,
    )
  const { api, key } = yield* connect(flags.api)
  let cursor: string | null = null
  let shown = 0
  do {
    const query = new URLSearchParams({
      since: since.toISOString(),
      limit: "200",
      ...(cursor === null ? {} : { cursor }),
    })
    const body: unknown = yield* call(api, "GET", `/api/audit?${query}`, { key })
    const page: Effect.Success<ReturnType<typeof readPage>> = yield* understood(api, readPage(body))
    for (const record of page.records) {
      yield* respond(flags, record, () => lineOf(record, auditSentence("en", record)))
    }
    shown += page.records.length
    cursor = page.next_cursor
  } while (cursor !== null && shown < shownAtMost)
  const note =
    cursor !== null
      ? `these are the newest ${shown} records; GET /api/audit/export returns all`
      : shown === 0
        ? `there are no records since ${since.toISOString()}`
        : undefined
  if (note !== undefined) yield* Effect.sync(() => void process.stderr.write(`svc: ${note}\n`))
}, explained)

/** Derives the seal keys from the master keys in a file. */
const sealKeys = Effect.fnUntraced(function* (file: string) {
  const { parseMasterKeys, Sealing } = yield* Effect.promise(() => import("@svc/cluster/sealing/Sealing"))
  const { sealKeysOf } = yield* Effect.promise(() => import("@svc/cluster/sealing/ServiceKey"))
  const text = yield* Effect.try({
    try: () => readFileSync(file, "utf8").trim(),
    catch: () => misused(`${file} cannot be read.`),
  })
  const keys = yield* Effect.mapError(parseMasterKeys(text), ({ message }) => misused(message))
  return yield* Effect.provide(Effect.map(Effect.service(Sealing), sealKeysOf), Sealing.layer(keys))
})

const verify = Command.make(
  "verify",
  {
    file: Argument.String("file").pipe(Argument.withDescription("The response of GET /api/audit/export")),
    head: Flag.String("head").pipe(
      Flag.withDescription("Number and hash of an earlier head that you stored elsewhere (1200:9f86d0…)"),
      Flag.optional,
    ),
    masterKeyFile: Flag.String("master-key-file").pipe(
      Flag.withDescription("For operators: a file with the master key, to verify the seals as well"),
      Flag.optional,
    ),
    ...formatFlags,
  },
  Effect.fnUntraced(function* ({ file, head, masterKeyFile, ...format }) {
    const kept = Option.getOrUndefined(Option.map(head, (text) => /^(\d+):([0-9a-f]{64})$/i.exec(text)))
    if (kept === null) return yield* misused("--head takes a number and 64 hexadecimal digits, separated by a colon.")
    const Verify = yield* Effect.promise(() => import("@svc/cluster/audit/Verify"))
    const keys = Option.isNone(masterKeyFile) ? undefined : yield* sealKeys(masterKeyFile.value)
    const walk = Verify.make(kept && { seq: Number(kept[1]), hash: kept[2]!.toLowerCase() }, keys)
    yield* Effect.tryPromise({
      try: async () => {
        for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) walk.add(line)
      },
      catch: () => misused(`${file} cannot be read.`),
    })
    const { records, from, to, faults, head: end } = walk.end()
    const sound = faults.length === 0
    if (!sound) yield* Effect.sync(() => void (process.exitCode = 1))
    yield* respond(format, { sound, records, from, to, faults, head: end ?? null }, () =>
      !sound
        ? [...faults, `${records} records checked: the log does NOT match its seals.`].join("\n")
        : records === 0
          ? "The export contains no sealed records."
          : `${records} records, ${from} to ${to}, match their seals. The log ends at ${end?.seq}:${end?.hash}; compare this with a head that you stored elsewhere (--head).`,
    )
  }, explained),
).pipe(Command.withDescription("Verify offline that an export of the audit log is unchanged."))

export const command = Command.make(
  "audit",
  {
    api: apiFlag,
    since: Flag.String("since").pipe(
      Flag.withDescription("Start of the period: a duration (1d, 90m) or a time"),
      Flag.withDefault("1d"),
    ),
    ...formatFlags,
  },
  list,
).pipe(Command.withDescription("Show the audit log of the account, newest first."), Command.withSubcommands([verify]))
