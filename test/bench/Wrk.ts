/** Runs the load generator wrk with a script of requests. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import type { Call, Load, Order } from "./LoadOrder.ts"
import { programs } from "./Programs.ts"

export const program = programs("wrk")

/** Quotes a text as a Lua long string, which drops a line break after its opening bracket. */
const quoted = (text: string) => `[==[\n${text}]==]`

/** wrk adds its own `Host` unless one has this exact spelling, and a second one is a 400. */
const named = (name: string) => (name.toLowerCase() === "host" ? "Host" : name)

const varies = ({ path: target, body = "" }: Call) => /\{(worker|n)\}/.test(target + body)

const script = ({ call, connections }: Order & { kind: "http" }) => `
wrk.method = ${quoted(call.method)}
wrk.path = ${quoted(call.path)}
${Object.entries(call.headers ?? {})
  .map(([name, value]) => `wrk.headers[ ${quoted(named(name))} ] = ${quoted(value)}`)
  .join("\n")}
${call.body === undefined ? "" : `wrk.body = ${quoted(call.body)}`}
${
  varies(call)
    ? `local n = 0
local fill = function(text)
  return text and text:gsub("{worker}", n % ${connections}):gsub("{n}", n) or nil
end
request = function()
  n = n + 1
  return wrk.format(nil, fill(wrk.path), nil, fill(wrk.body))
end`
    : ""
}
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"done":%d,"refused":%d,"broken":%d,"micros":%d,"p50":%d,"p99":%d}\\n', summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
`

interface Summary {
  readonly done: number
  /** Number of responses with status 400 or above. */
  readonly refused: number
  readonly broken: number
  readonly micros: number
  readonly p50: number
  readonly p99: number
}

export const drive = async (wrk: string, order: Order & { kind: "http" }, seconds: number): Promise<Load> => {
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-bench-"))
  try {
    const file = path.join(home, "call.lua")
    writeFileSync(file, script(order))
    const { stdout, stderr } = await promisify(execFile)(wrk, [
      "-t1",
      `-c${order.connections}`,
      // wrk only accepts whole seconds.
      `-d${Math.max(1, Math.round(seconds))}s`,
      "-s",
      file,
      `http://127.0.0.1:${order.port}/`,
    ])
    // wrk continues without the script after an error in it.
    if (stderr !== "") throw new Error(`wrk: ${stderr.trim()}`)
    const summary = JSON.parse(stdout.trim().split("\n").at(-1)!) as Summary
    const right = (order.call.status ?? 200) < 400 ? summary.done - summary.refused : summary.refused
    return {
      done: summary.done,
      wrong: summary.done - right + summary.broken,
      seconds: summary.micros / 1e6,
      p50: summary.p50 / 1000,
      p99: summary.p99 / 1000,
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
