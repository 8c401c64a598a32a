/**
 * Sends bodies that cost more to validate than to send to every endpoint that takes one, at the largest accepted size,
 * and measures the main thread's CPU time. The minimum of three runs counts, so that other load on the machine does not
 * matter.
 */
import { readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { operations, pathOf, type Operation } from "../api/Operations.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"

/** Maximum time in milliseconds for which one body may block the event loop. */
const atMost = 50
const tries = 3
/** Sizes just below the limits of a body: 1 MiB with a credential, 64 KiB without; and the number of values. */
const bytes = { credentialed: 1024 * 1024 - 1024, open: 64 * 1024 - 1024 }
const values = 4900

const filled = (size: number, piece: string) => piece.repeat(Math.floor(size / piece.length))

const bombs = (operation: Operation): ReadonlyArray<readonly [what: string, body: string]> => {
  const size = operation.access === undefined ? bytes.open : bytes.credentialed
  const example: Record<string, unknown> = operation.body
  const name = "x".repeat(Math.max(1, Math.floor(size / values) - 12))
  const worst = [
    ["an array of ones", `[${filled(values * 2, "1,").slice(0, -1)}]`],
    ["an array of far too many ones", `[${filled(size - 2048, "1,").slice(0, -1)}]`],
    ["an array of long texts", `[${Array.from({ length: values }, () => `"${name}"`).join(",")}]`],
    [
      "an array of networks",
      `[${Array.from({ length: values }, (_, at) => `"2001:db8:${at.toString(16)}::/48"`).join(",")}]`,
    ],
    ["an object of unknown members", `{${Array.from({ length: values }, (_, at) => `"${name}${at}":1`).join(",")}}`],
    ["a long text", `"${filled(size - 2048, "a")}"`],
    ["a text of separators", `"${filled(size - 2048, "a-")}"`],
    ["a text of addresses", `"${filled(size - 2048, "a@b.c, ")}"`],
    ["a text of spaces", `"${filled(size - 2048, " ")}"`],
    ["a text of escapes", `"${filled(size - 2048, "\\u00e9")}"`],
    ["a long number", filled(size - 2048, "1")],
    ["a deep array", `${filled((size - 2048) / 2, "[")}${filled((size - 2048) / 2, "]")}`],
  ] as const
  const inPlace = Object.keys(example).flatMap((member) =>
    worst.map(([what, value]): readonly [string, string] => [
      `${what} as ${member}`,
      `{${Object.entries(example)
        .map(([key, one]) => `${JSON.stringify(key)}:${key === member ? value : JSON.stringify(one)}`)
        .join(",")}}`,
    ]),
  )
  return [...worst, ...inPlace]
}

/** Returns the CPU time of the main thread in milliseconds. */
const worked = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1_000_000

export const hostileBodies = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    const pid = service.child.pid!
    const wrong: Array<string> = []

    const cost = async (operation: Operation, body: string) => {
      const before = worked(pid)
      const response = await fetch(`${service.base}${pathOf(operation, handle)}`, {
        method: operation.method,
        headers: {
          "content-type": "application/json",
          ...(operation.access === undefined ? {} : { authorization: `Bearer ${owner.session}` }),
        },
        body,
      })
      const { length } = await response.text()
      const { status } = response
      // Accepted input may be returned as sent; a rejection must be short.
      if (status >= 500 || (status >= 400 && length > 64 * 1024))
        wrong.push(`${operation.id}: ${status} of ${length} bytes`)
      return worked(pid) - before
    }

    const found: Array<{ readonly millis: number; readonly what: string }> = []
    // Operations that end the account would end the row.
    const taking = operations.filter(({ id, body }) => body !== undefined && !/deletion|logout/i.test(id))
    for (const operation of taking) {
      for (const [what, body] of bombs(operation)) {
        let least = Number.POSITIVE_INFINITY
        for (let attempt = 0; attempt < tries && least > atMost / 5; attempt++) {
          least = Math.min(least, await cost(operation, body))
          await sleep(0)
        }
        found.push({ millis: least, what: `${operation.id}: ${what}` })
      }
    }
    found.sort((one, other) => other.millis - one.millis)
    const worst = found[0]!
    return {
      id: "hostile-bodies",
      ok: worst.millis <= atMost && wrong.length === 0,
      what: `${found.length} bodies of the largest accepted size, at ${taking.length} endpoints`,
      figures: { "worst CPU ms": round(worst.millis), "at most": atMost, "wrong responses": wrong.length },
      details: [...found.slice(0, 10).map(({ millis, what }) => `${round(millis)} ms ${what}`), ...wrong.slice(0, 10)],
    }
  } finally {
    await deployment.stop()
  }
}
