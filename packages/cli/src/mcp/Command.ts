/**
 * `svc mcp`: an MCP server over standard input and output. Each line is a message, which is relayed to `/api/mcp` with
 * the headers of its protocol revision; responses, and the notifications of a subscription, are printed as lines. Standard output contains nothing else.
 */
import { createInterface } from "node:readline"
import { Readable } from "node:stream"
import { Effect, FiberSet, Option, Redacted, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { apiFlag } from "../client/Flags.ts"
import * as Install from "./Install.ts"
import { connect, type Connection, explained } from "../client/Connection.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON-RPC carries any JSON
type Json = Record<string, any>

/** Returns a header value: the text itself if a header can contain it, otherwise base64 of its UTF-8. */
const headerValue = (text: string) =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`

const parse = (line: string): Json => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "object" && value !== null ? value : {}
  } catch {
    return {}
  }
}

const headersOf = (message: Json, negotiated: string | undefined): Record<string, string> => {
  const claim = message["params"]?.["_meta"]?.["io.modelcontextprotocol/protocolVersion"]
  if (typeof claim !== "string") return negotiated === undefined ? {} : { "mcp-protocol-version": negotiated }
  const { name = message["params"]["uri"] } = message["params"]
  return {
    "mcp-protocol-version": headerValue(claim),
    "mcp-method": headerValue(String(message["method"])),
    ...(typeof name === "string" ? { "mcp-name": headerValue(name) } : {}),
  }
}

const print = (text: string) => process.stdout.write(`${text}\n`)

/** Prints the messages of a stream (Server-Sent Events), each of which is one `data` line, until it ends or is aborted. */
const printStream = async (body: ReadableStream<Uint8Array>) => {
  try {
    for await (const line of createInterface({ input: Readable.fromWeb(body as never) }))
      if (line.startsWith("data: ")) print(line.slice(6))
  } catch {
    // The connection was lost, or the client cancelled the subscription.
  }
}

const relay = (connection: Connection, query: string, streams: Map<unknown, AbortController>) => {
  let negotiated: string | undefined
  return Effect.fnUntraced(function* (line: string) {
    const message = parse(line)
    if (message["method"] === "notifications/cancelled") streams.get(message["params"]?.["requestId"])?.abort()
    const cancelled = new AbortController()
    // A client may cancel a subscription, or leave, before the service has responded.
    if (message["method"] === "subscriptions/listen") streams.set(message["id"], cancelled)
    const answer = yield* Effect.tryPromise(async (signal) => {
      const response = await fetch(`${connection.api}/api/mcp${query}`, {
        method: "POST",
        redirect: "manual",
        signal: AbortSignal.any([signal, cancelled.signal]),
        headers: {
          authorization: `Bearer ${Redacted.value(connection.key)}`,
          "content-type": "application/json",
          ...headersOf(message, negotiated),
        },
        body: line,
      })
      if (response.body === null || !response.headers.get("content-type")?.startsWith("text/event-stream"))
        return { text: await response.text() }
      await printStream(response.body)
      return undefined
    }).pipe(Effect.option)
    streams.delete(message["id"])
    if (cancelled.signal.aborted || (Option.isSome(answer) && answer.value === undefined)) return undefined
    if (message["id"] === undefined && message["method"] !== undefined) return undefined
    const body = Option.map(answer, (response) => parse(response?.text ?? ""))
    if (Option.isSome(body) && body.value["jsonrpc"] === "2.0") {
      if (message["method"] === "initialize") negotiated = body.value["result"]?.["protocolVersion"]
      return JSON.stringify(body.value)
    }
    // A failed call (no credential, unreachable service) is returned as a JSON-RPC error.
    const reason = Option.match(body, {
      onNone: () => `${connection.api} is unreachable`,
      onSome: (problem) => String(problem["detail"] ?? problem["title"] ?? "The service rejected the request"),
    })
    return JSON.stringify({ jsonrpc: "2.0", id: message["id"] ?? null, error: { code: -32000, message: reason } })
  })
}

const serve = Effect.fnUntraced(function* (connection: Connection, query: string) {
  const streams = new Map<unknown, AbortController>()
  const answer = relay(connection, query, streams)
  const running = yield* FiberSet.make()
  const lines = Stream.fromAsyncIterable(
    createInterface({ input: process.stdin, crlfDelay: Infinity }),
    () => undefined,
  )
  yield* Stream.runForEach(lines, (line) => {
    if (line.trim() === "") return Effect.void
    const work = Effect.map(answer(line), (text) => {
      if (text !== undefined) print(text)
    })
    // The protocol revision is negotiated before any message that depends on it is sent.
    return /"initialize"/.test(line) ? work : Effect.asVoid(FiberSet.run(running, work))
  }).pipe(Effect.ignore)
  // The client has left, so nobody cancels its subscriptions.
  for (const stream of streams.values()) stream.abort()
  yield* FiberSet.awaitEmpty(running)
})

export const command = Command.make(
  "mcp",
  {
    api: apiFlag,
    tools: Flag.String("tools").pipe(
      Flag.withDescription("Lists only these toolsets, separated by commas, for example mail,vault."),
      Flag.optional,
    ),
  },
  Effect.fnUntraced(function* (flags) {
    const query = Option.match(flags.tools, {
      onNone: () => "",
      onSome: (names) => `?${new URLSearchParams({ tools: names })}`,
    })
    yield* Effect.scoped(serve(yield* connect(flags.api), query))
  }, explained),
).pipe(
  Command.withDescription("Serve MCP over standard input and output, or add it to a client with `svc mcp install`."),
  Command.withSubcommands([Install.command]),
)
