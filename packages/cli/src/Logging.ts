/**
 * The log of the process: text for people at a terminal, one JSON object per line for machines. JSON lines are batched
 * for a moment. docs/operations.md describes their members.
 */
import { hostname } from "node:os"
import { writeSync } from "node:fs"
import type { RequestEntry } from "@svc/api/RequestLog"
import * as Redaction from "@svc/cluster/observe/Redaction"
import { Layer, Logger, LogLevel, References } from "effect"

const gatherMillis = 50
const waiting: Array<string> = []
let timer: NodeJS.Timeout | undefined

const flush = () => {
  if (timer !== undefined) clearTimeout(timer)
  timer = undefined
  if (waiting.length > 0) process.stdout.write(waiting.splice(0).join(""))
}

const write = (line: string): void => {
  waiting.push(`${line}\n`)
  timer ??= setTimeout(flush, gatherMillis).unref()
}

/** No later flush runs when the process exits. */
process.on("exit", () => {
  if (waiting.length === 0) return
  try {
    writeSync(1, waiting.splice(0).join(""))
  } catch {
    // The reader has closed the pipe.
  }
})

const formats = ["auto", "json", "pretty"]
const format = process.env["SVC_LOG_FORMAT"] ?? "auto"
const pretty = format === "pretty" || (format !== "json" && process.stdout.isTTY === true)

/** The author of the entries: the roles and the machine of the process. */
const writer = { role: "cli", instance: hostname() }

/** Sets the roles that appear in the following entries. */
export const writesAs = (roles: ReadonlyArray<string>): void => {
  writer.role = roles.join(",")
  serving = true
}

/** Whether the output is the log of a service and not the result of a command. */
let serving = false
export const isServing = (): boolean => serving

/** Messages that the cluster library writes at every start, before the first runner is registered. */
const expected = new Set(["No healthy runners available"])

/**
 * A message that the cluster library repeats every second while the database is unreachable. The connection pools
 * report this once.
 */
const repeated = "Shard lock storage is still unhealthy"

const textOf = ({ message }: Logger.Options<unknown>): unknown => (Array.isArray(message) ? message[0] : message)

/** Returns whether the entry is a library message at `info`, which operators only need for debugging. */
const isDetail = (entry: Logger.Options<unknown>) =>
  textOf(entry) === repeated ||
  (entry.logLevel === "Info" && entry.fiber.getRef(References.CurrentLogAnnotations)["package"] === "@effect/cluster")

/** Formats an entry as a JSON line: fixed members first, then its annotations. */
const jsonLine = (options: Logger.Options<unknown>): string => {
  const { annotations, cause, level, message, timestamp } = Logger.formatStructured.log(options)
  const span = options.fiber.cache.span
  return JSON.stringify({
    ...(Redaction.of("", annotations) as object),
    timestamp,
    level: isDetail(options) ? "DEBUG" : level,
    message: Redaction.of("", message),
    ...writer,
    ...(span?.sampled === true ? { trace_id: span.traceId } : {}),
    ...(cause === undefined ? {} : { error: Redaction.ofText(cause) }),
  })
}

const base: Logger.Logger<unknown, void> = pretty
  ? Logger.consolePretty()
  : Logger.make((options) => write(jsonLine(options)))

const logger = Logger.make<unknown, void>((entry) => {
  const message = textOf(entry)
  if (typeof message === "string" && expected.has(message)) return
  if (isDetail(entry) && LogLevel.isGreaterThan(entry.fiber.getRef(References.MinimumLogLevel), "Debug")) return
  base.log(entry)
})

/** Parses `SVC_LOG_LEVEL`; `--log-level` takes precedence. */
const levelOf = (text: string | undefined): LogLevel.LogLevel | undefined =>
  LogLevel.values.find((level) => level.toLowerCase() === (text ?? "").toLowerCase().replace("warning", "warn"))

export const wrongLevel = (text: string | undefined): string | undefined =>
  text === undefined || text === "" || levelOf(text) !== undefined
    ? undefined
    : `SVC_LOG_LEVEL is "${text}", but must be one of ${LogLevel.values.map((level) => level.toLowerCase()).join(", ")}.`

export const wrongFormat = (text: string | undefined): string | undefined =>
  text === undefined || formats.includes(text)
    ? undefined
    : `SVC_LOG_FORMAT is "${text}", but must be one of ${formats.join(", ")}.`

const minimum = levelOf(process.env["SVC_LOG_LEVEL"]) ?? "Info"

export const layer = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, minimum))

/**
 * Writes the log line of a request without the library's logger, which would cost more than all other HTTP processing.
 */
export const requestLine = (level: LogLevel.LogLevel): ((entry: RequestEntry) => void) | undefined => {
  if (LogLevel.isGreaterThan(level, "Info")) return undefined
  return pretty
    ? ({ method, route, status, duration_ms, request_id, credential, problem }) =>
        write(
          `${new Date().toISOString().slice(11, 23)} ${method} ${route} ${status}${problem === null ? "" : ` ${problem}`} ${duration_ms}ms ${credential ?? "-"} ${request_id}`,
        )
    : (entry) =>
        write(
          JSON.stringify({
            timestamp: new Date().toISOString(),
            level: "INFO",
            message: "request",
            ...writer,
            ...entry,
          }),
        )
}
