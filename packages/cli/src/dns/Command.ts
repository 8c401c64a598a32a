/** `svc dns`: prints the records to publish, as a zone file. */
import { isIP } from "node:net"
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { type Format, formatFlags, print } from "../client/Format.ts"
import { reportedError } from "../ReportedError.ts"

const show = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>, format: Format) {
  const [{ load, SettingsInvalid }, { lineOf, wanted }] = yield* Effect.promise(() =>
    Promise.all([import("../serve/Settings.ts"), import("./Records.ts")]),
  )
  const wrong = addresses.find((address) => isIP(address) === 0)
  if (wrong !== undefined) return yield* new SettingsInvalid({ message: `--address ${wrong} is not an IP address.` })
  const records = wanted(yield* load, { addresses })
  const lines = ["; For the DKIM keys, run: svc dkim", ""]
  let why: string | undefined
  for (const record of records) {
    if (record.why !== why) lines.push(...(why === undefined ? [] : [""]), `; ${record.why}`)
    why = record.why
    lines.push(lineOf(record))
  }
  const body = {
    records: records.map(({ name, kind, value = null, why: reason }) => ({ name, type: kind, value, why: reason })),
  }
  yield* print(format, body, lines)
})

export const command = Command.make(
  "dns",
  {
    address: Flag.String("address").pipe(
      Flag.withDescription("A public IPv4 or IPv6 address of this deployment; may be repeated"),
      Flag.between(0, 64),
    ),
    ...formatFlags,
  },
  ({ address, ...format }) => reportedError(show(address, format)),
).pipe(Command.withDescription("Print the DNS records to publish, as a zone file."))
