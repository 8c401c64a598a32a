/** The events of a public connection, and the events that lead to each of its states. */
import { reset } from "@svc/tunnel-edge/protocol/Manifest"
import { get, type make, ok, type Setting } from "../../harness/RecordedContext.ts"

export type Recorded = ReturnType<typeof make>
const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
const switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

export const events: Readonly<Record<string, (one: Recorded) => unknown>> = {
  "a request": ({ client }) => client(get("/2")),
  "two requests": ({ client }) => client(get("/2") + get("/3")),
  "a part of a request": ({ client }) => client("GET /2 HT"),
  "a request for another host": ({ client }) => client("GET /2 HTTP/1.1\r\nHost: b.example\r\n\r\n"),
  "a request that is refused": ({ client }) => client(get("/no")),
  "a signed request": ({ client }) => client(get("/signed", "Signature-Input: x\r\n")),
  "a malformed request": ({ client }) => client("GET\r\n\r\n"),
  "a request for an upgrade": ({ client }) => client(get("/2", upgrade)),
  "the end of the client": ({ connection }) => connection.ended(),
  "the close of the client": ({ connection }) => connection.closed(),
  "a route": ({ connection, route }) => connection.routed(route),
  "an answer instead of a route": ({ connection }) => connection.routed({ _tag: "Answer", bytes: Buffer.from("none") }),
  "a response": ({ agent }) => agent(ok),
  "an error": ({ agent }) => agent("HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"),
  "the switch to a protocol": ({ agent }) => agent(switched),
  "the end of the stream": ({ connection }) => connection.streamEnded(),
  "a reset because the agent is not here": ({ connection }) => connection.streamReset(reset.not_here),
  "a reset because the agent refused": ({ connection }) => connection.streamReset(reset.local_refused),
  "the deadline": ({ connection }) => connection.deadlinePassed(),
  silence: ({ connection }) => connection.idled(),
  "the next turn": ({ connection }) => connection.turned(),
  "the end of the quota": ({ cut }) => cut(),
  "new settings": ({ changed }) => changed(),
}

/** The events that lead to each state. */
export const states: Readonly<
  Record<string, { readonly events: ReadonlyArray<string>; readonly setting?: Setting; readonly first?: string }>
> = {
  reading: { events: [] },
  "reading a part": { events: ["a part of a request"] },
  routing: { events: [], first: get("/1") },
  "routing an upgrade": { events: [], first: get("/1", upgrade) },
  forwarding: { events: ["a route"], first: get("/1") },
  "forwarding a body": {
    events: ["a route"],
    first: "POST /1 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\n123",
  },
  "forwarding an upgrade": { events: ["a route"], first: get("/1", upgrade) },
  repeating: { events: ["a route", "a reset because the agent is not here"], first: get("/1") },
  answering: { events: ["a route", "a response"], first: get("/1") },
  "answering two": { events: ["a route", "a request", "a response"], first: get("/1") },
  upgraded: { events: ["a route", "the switch to a protocol", "the next turn"], first: get("/1", upgrade) },
  "an upgrade that was rejected": { events: ["a route", "a response", "the next turn"], first: get("/1", upgrade) },
  answered: { events: ["a route", "a response", "the end of the stream"], first: get("/1") },
  refusing: { events: ["a route", "a request that is refused"], first: get("/1") },
  closing: { events: ["an answer instead of a route"], first: get("/1") },
  linking: { events: [], first: get("/link") },
  closed: { events: ["the close of the client"], first: get("/1") },
  withdrawn: { events: ["a route", "a response", "new settings"], first: get("/1"), setting: { allows: () => false } },
  "a spent turn": { events: ["a route", "two requests"], first: get("/1"), setting: { isTurnSpent: () => true } },
  "a full link": { events: ["a route"], first: get("/1"), setting: { full: true } },
  "an agent that leaves": { events: ["a route"], first: get("/1"), setting: { isLeaving: () => true } },
  "a name of TLS": { events: [], first: get("/1"), setting: { client: { serverName: "b.example" } } },
}
