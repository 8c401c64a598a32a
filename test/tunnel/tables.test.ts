/**
 * Tables of the edge: every event in every state of a public connection, every form of a request, every frame of a link,
 * and every response of the edge itself. The files in `tables/` hold the results; `vitest run test/tunnel/tables
 * --update=all` writes them anew after an intended change.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import * as EdgeResponses from "@svc/tunnel-edge/edge/http/EdgeResponses"
import * as Hosts from "@svc/tunnel-edge/edge/routing/Hosts"
import * as PasswordThrottle from "@svc/tunnel-edge/edge/routing/PasswordThrottle"
import { makeMemory } from "@svc/tunnel-edge/edge/routing/Callers"
import { limits as linkLimits, reset } from "@svc/tunnel-edge/protocol/Manifest"
import { Mux } from "@svc/tunnel-edge/protocol/Mux"
import { encode, judge, limits, Refusal } from "@svc/tunnel-edge/protocol/RequestHead"
import { RequestSplitter } from "@svc/tunnel-edge/protocol/RequestSplitter"
import { expect, it } from "vitest"
import { make } from "../harness/RecordedContext.ts"
import { events, type Recorded, states } from "./tables/Connections.ts"
import { frames } from "./tables/Frames.ts"
import { heads } from "./tables/Heads.ts"

const inFile = (name: string, lines: ReadonlyArray<string>) =>
  expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(`tables/${name}.txt`)
const shown = (text: string) => {
  const line = text.replaceAll("\r\n", "⏎").replaceAll("\r", "␍").replaceAll("\n", "␊").replaceAll("\0", "␀")
  return line.length > 700 ? `${line.slice(0, 60)}… (${text.length})` : line
}

it("every event in every state of a public connection has its effect", async () => {
  const lines: Array<string> = []
  for (const [state, { events: before, setting, first }] of Object.entries(states)) {
    const begin = () => {
      const one = make({
        isLink: ({ target }) => target === "/link",
        refuses: ({ target }) => (target === "/no" ? Buffer.from("refused") : undefined),
        callerOf: async () => ({ origin: "https://caller.example", handle: undefined }),
        ...setting,
      })
      if (first !== undefined) one.client(first)
      for (const event of before) events[event]!(one)
      return one
    }
    const described = ({ connection, did, streams, counted, toClient, deadline, idle }: Recorded, from = 0) => {
      const { responses, requests, isClosed, hasLeft } = counted
      const traffic = `in ${counted.in}, ${requests} requests, responses ${responses.map((isError) => (isError ? "error" : "ok")).join(" ") || "none"}`
      return `${connection.state} | ${did.slice(from).join(", ")} | ${deadline()} ${idle()} | ${traffic}${isClosed ? ", closed" : ""}${hasLeft ? ", left" : ""} | agent ${shown(streams.join(" & "))} | client ${shown(toClient())}`
    }
    lines.push(`# ${state}: ${described(begin())}`)
    const usual = described(begin(), 99)
    for (const [event, run] of Object.entries(events)) {
      const one = begin()
      const from = one.did.length
      try {
        run(one)
        // A signature is verified in a later turn.
        await Promise.resolve()
          .then(() => undefined)
          .then(() => undefined)
      } catch (error) {
        lines.push(`${event}: throws ${error instanceof Error ? error.message : String(error)}`)
        continue
      }
      const after = described(one, from)
      if (after !== usual) lines.push(`${event}: ${after}`)
    }
  }
  await inFile("connections", lines)
})

const bytesOf = (text: string) =>
  text.replaceAll("⏎", "\r\n").replaceAll("␍", "\r").replaceAll("␊", "\n").replaceAll("␀", "\0")
const attempt = (run: () => string) => {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return `${error.status} ${error.message}`
  }
}

it("every form of a request is passed on as the protocol demands", async () => {
  const forwarded = {
    client: "192.0.2.1",
    proto: "http",
    host: undefined,
    ownAuthorization: false,
    isLast: false,
  } as const
  const lines = heads.map(
    (text) =>
      `${shown(text)}\n  ${attempt(() => {
        const { head, body } = judge(bytesOf(text))
        const { host, sentHost, upgrade: isUpgrade, close, isSigned } = head
        return `${host} ${sentHost}${isUpgrade ? " upgrade" : ""}${close ? " close" : ""}${isSigned ? " signed" : ""} ${JSON.stringify(body)} ${shown(encode(head, forwarded).toString("latin1"))}`
      })}`,
  )
  const { head } = judge(bytesOf("GET / HTTP/1.1⏎Host: a.example⏎Authorization: x⏎X: y⏎x: z"))
  for (const more of [{ host: "local:80" }, { ownAuthorization: true }, { isLast: true }, { proto: "https" }] as const)
    lines.push(
      `${JSON.stringify(more)}: ${shown(encode(head, { ...forwarded, ...more }, "Svc-Agent: z\r\n").toString("latin1"))}`,
    )
  lines.push(JSON.stringify([...head.headers]))
  await inFile("heads", lines)
})

it("every form of a body ends where it says", async () => {
  const post = "POST / HTTP/1.1⏎Host: a.example⏎Transfer-Encoding: chunked⏎⏎"
  const next = "GET /next HTTP/1.1⏎Host: a.example⏎⏎"
  const large = "x".repeat(limits.headBytes)
  const inputs: ReadonlyArray<string> = [
    `POST / HTTP/1.1⏎Host: a.example⏎Content-Length: 3⏎⏎abc${next}`,
    `${post}3⏎abc⏎0⏎⏎${next}`,
    `${post}3⏎abc⏎A⏎0123456789⏎0⏎X-Trailer: y⏎Content-Length: 1⏎Svc-Agent: x⏎⏎${next}`,
    ...[
      "host",
      "transfer-encoding",
      "connection",
      "trailer",
      "authorization",
      "cookie",
      "set-cookie",
      "content-encoding",
      "content-range",
      "content-type",
      "expect",
      "max-forwards",
      "via",
    ].map((name) => `${post}0⏎${name}: x⏎⏎`),
    `${post}3;ext=1⏎abc⏎0⏎⏎`,
    `${post}3 ⏎abc⏎0⏎⏎`,
    `${post}3␊abc⏎0⏎⏎`,
    `${post}g⏎`,
    `${post}3⏎abcd⏎0⏎⏎`,
    `${post}3⏎abc␍x0⏎⏎`,
    `${post}ffffffff⏎`,
    `${post}fffffffff⏎`,
    `${post}${"0".repeat(limits.chunkLine)}`,
    `${post}${"0".repeat(limits.chunkLine + 1)}`,
    `${post}0⏎X␊⏎`,
    `${post}0⏎X⏎⏎`,
    `${post}0⏎: x⏎⏎`,
    `${post}0⏎X: ${large}⏎⏎`,
    `⏎⏎⏎⏎${next}`,
    `⏎⏎⏎⏎⏎${next}`,
    `⏎⏎${next}⏎⏎⏎${next}`,
    `␍x${next}`,
    `GET / HTTP/1.1⏎Host: a.example⏎X: ${"x".repeat(limits.headBytes - "GET / HTTP/1.1⏎Host: a.example⏎X: ".length - 2)}⏎⏎`,
    `GET / HTTP/1.1⏎Host: a.example⏎X: ${"x".repeat(limits.headBytes)}⏎⏎`,
    `${next}GET / HTTP/1.1⏎Host: b.example⏎⏎`,
    `${next}GET / HTTP/1.1⏎Host: a.example⏎Connection: Upgrade⏎Upgrade: websocket⏎⏎`,
    `GET / HTTP/1.1⏎Host: a.example⏎Connection: Upgrade⏎Upgrade: websocket⏎⏎raw`,
    `GET / HTTP/1.1⏎Host: a.example⏎Connection: Upgrade⏎Upgrade: websocket⏎⏎${large}x`,
  ]
  const run = (text: string, accepted: boolean | undefined) => {
    const out: Array<string> = []
    const splitter = new RequestSplitter(
      ({ target }) => void out.push(`[${target}]`),
      (bytes) => void out.push(bytes.toString("latin1")),
    )
    const result = attempt(() => {
      splitter.feed(Buffer.from(bytesOf(text), "latin1"))
      if (accepted !== undefined) splitter.upgraded(accepted)
      return splitter.isBetween ? "between" : "within"
    })
    return `${shown(out.join(""))} ${result}`
  }
  await inFile(
    "bodies",
    inputs.flatMap((text) => [
      shown(text),
      ...(text.includes("Upgrade") ? [undefined, true, false] : [undefined]).map(
        (accepted) => `  ${run(text, accepted)}`,
      ),
    ]),
  )
})

it("every frame of a link is answered or refused", async () => {
  const lines: Array<string> = []
  for (const [name, input] of Object.entries(frames)) {
    const did: Array<string> = []
    let written = Buffer.alloc(0)
    const watch = (stream: NonNullable<ReturnType<Mux["open"]>>) => {
      stream.onData = (piece) => void did.push(`data of ${stream.id}: ${piece.length}`)
      stream.onEnd = () => void did.push(`end of ${stream.id}`)
      stream.onReset = (code) => void did.push(`reset of ${stream.id}: ${code}`)
      stream.onDrain = () => void did.push(`drain of ${stream.id}`)
    }
    const mux = new Mux({ write: (chunks) => ((written = Buffer.concat([written, ...chunks])), true) }, true, {
      open: (stream, kind, flags, meta) => {
        did.push(`open ${stream.id} ${kind} ${flags} ${meta.toString()}`)
        watch(stream)
      },
      control: (type, payload) => void did.push(`control ${type} ${payload.length}`),
    })
    const stream = mux.open(1, 0, Buffer.from("{}"))!
    watch(stream)
    try {
      for (const one of input) mux.receive(one)
    } catch (error) {
      did.push(`throws ${error instanceof Error ? error.message : String(error)}`)
    }
    stream.write(Buffer.from("more"))
    stream.end()
    await new Promise((resolve) => setImmediate(resolve))
    const sent: Array<string> = []
    for (let at = 0; at < written.length; at += 8 + written.readUIntBE(at + 1, 3))
      sent.push(`${written[at]}/${written.readUInt32BE(at + 4)}/${written.readUIntBE(at + 1, 3)}`)
    lines.push(`${name}: ${did.join(", ")} | sent ${sent.join(" ")} | ${mux.streams.size} open, ${mux.queued} queued`)
  }
  // Bytes that a stream had queued no longer count when it ends.
  const mux = new Mux({ write: () => true }, true, { open: () => {}, control: () => {} })
  const one = mux.open(1, 0, Buffer.from("{}"))!
  one.write(Buffer.alloc(linkLimits.windowBytes + 10))
  lines.push(`queued ${mux.queued}`)
  one.reset(reset.cancel)
  lines.push(`queued after a reset ${mux.queued}`)
  await inFile("frames", lines)
})

it("the responses of the edge are complete", async () => {
  const book = {
    environment: "production",
    baseUrl: "https://api.example",
    tunnelDomain: "Tunnel.example",
  } as AddressBook
  const lines: Array<string> = []
  const text = (bytes: Buffer) => shown(bytes.toString("utf8").replace(/req_\w+/g, "req_…"))
  for (const accept of ["*/*", "text/html"]) {
    const { head } = judge(`GET / HTTP/1.1\r\nHost: a.example\r\nAccept: ${accept}`)
    for (const code of [
      "tunnel_agent_offline",
      "tunnel_local_refused",
      "tunnel_local_timeout",
      "tunnel_transfer_blocked",
      "not_found",
      "rate_limited",
    ] as const)
      lines.push(`${code} ${accept}: ${text(EdgeResponses.problemFor(book, head, code, "In detail."))}`)
    lines.push(text(EdgeResponses.problemFor(book, head, "rate_limited", "In detail.", 7)))
  }
  for (const status of [200, 400, 401, 403, 404, 409, 410, 421, 426, 429, 431, 502, 503, 504, 505, 599])
    lines.push(text(EdgeResponses.refusal(status, "Grüße", { "x-more": "1" })))
  const hosts = Hosts.make(book)
  for (const host of [
    "ada.tunnel.example",
    "a-da.tunnel.example",
    "connect.tunnel.example",
    "tunnel.example",
    "ada.example",
  ])
    lines.push(`${host}: ${hosts.nameOf(host)} ${hosts.takesLinks(host)}`)
  lines.push(hosts.connect, ...hosts.certified)

  let now = 0
  const throttle = PasswordThrottle.make(() => now)
  for (let failures = 1; failures <= 11; failures++) {
    throttle.failed("one", "client")
    lines.push(
      `${failures} failures: ${throttle.brakedFor("one", "client")} ${throttle.brakedFor("one", "other")} ${throttle.brakedFor("two", "client")}`,
    )
  }
  for (now of [59_999, 60_000, 60_001]) lines.push(`after ${now} ms: ${throttle.brakedFor("one", "client")}`)
  throttle.failed("one", "client")
  lines.push(`anew: ${throttle.brakedFor("one", "client")}`)

  const memory = makeMemory()
  for (const [identity, signature, created, at] of [
    ["one", "a", 0, 0],
    ["one", "a", 0, 1],
    ["two", "a", 0, 1],
    ["one", "b", 0, 1],
    ["one", "a", 0, 10_000],
    ["one", "a", 10_000, 10_000],
  ] as const)
    lines.push(`${identity} ${signature} ${created} at ${at}: ${memory.take(identity, signature, created, at)}`)
  await inFile("responses", lines)
})
