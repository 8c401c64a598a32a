import { expect, layer } from "@effect/vitest"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as ConnectorWork from "@svc/cluster/connectors/work/ConnectorWork"
import { mayBeForUs } from "@svc/cluster/connectors/platforms/mastodon/Streaming"
import * as Overdue from "@svc/cluster/work/Overdue"
import { Effect, Layer } from "effect"
import type { WebSocket } from "ws"
import { actors, waitUntil } from "../harness/Actors.ts"
import { accountHolder } from "../harness/Stores.ts"
import { mastodonServer, connectedIdentity, eventsOf, rowOf } from "./ConnectedIdentity.ts"
import type { MastodonServer } from "./mastodon/Server.ts"

const reportedTexts = (id: string) =>
  Effect.map(eventsOf(id, "connector.mention"), (events) => events.map(({ data }) => data.post.text as string))
const polls = (server: MastodonServer) =>
  Effect.sync(() => server.seen.filter(({ path }) => path === "/api/v1/notifications").length)
const opened = (server: MastodonServer) => Effect.sync(() => server.streams.opened())
const open = (server: MastodonServer) => Effect.sync(() => server.streams.open())

/** Advances the clock slowly, because sockets work in real time. A poll without a stream comes after 30 seconds. */
const slowly = "2 millis"
const withoutStream = 25_000

const listening = Effect.fnUntraced(function* (server: MastodonServer, handle: string) {
  const made = yield* connectedIdentity(server, handle)
  yield* waitUntil(rowOf(made.id), (row) => row?.mark != null, 0)
  yield* waitUntil(open(server), (count) => count === 1, 0)
  return made
})

const watched = Overdue.layer(ConnectorWork.watched).pipe(Layer.provideMerge(actors()))

layer(watched)("a server with streams", (it) => {
  it.effect("is connected, and reports a mention immediately", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ streaming: true })
      const { id } = yield* listening(server, "ada")
      let notified = 0
      yield* (yield* ChangeFeed).on(id, () => notified++)
      const grace = server.world.join("grace")
      for (const [before, text] of ["@botada one", "@botada two", "@botada three"].entries()) {
        server.world.publish(grace, text)
        const { millis } = yield* waitUntil(reportedTexts(id), (texts) => texts.length > before, slowly)
        expect(millis).toBeLessThan(withoutStream)
        expect(yield* Effect.sync(() => notified)).toBeGreaterThan(before)
      }
      expect(yield* reportedTexts(id)).toEqual(["@botada one", "@botada two", "@botada three"])
    }),
  )

  it.effect("is reconnected after a restart, and reports each mention from the outage once", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ streaming: true })
      const { id } = yield* listening(server, "bea")
      const grace = server.world.join("grace")
      server.world.publish(grace, "@botbea before")
      yield* waitUntil(reportedTexts(id), (texts) => texts.length === 1, slowly)
      delete server.settings.streaming
      server.streams.drop()
      server.world.publish(grace, "@botbea meanwhile")
      yield* waitUntil(reportedTexts(id), (texts) => texts.length === 2, "1 second")
      server.settings.streaming = true
      const { value } = yield* waitUntil(open(server), (count) => count === 1, "1 second")
      expect(value).toBe(1)
      server.world.publish(grace, "@botbea after")
      const { millis } = yield* waitUntil(reportedTexts(id), (texts) => texts.length === 3, slowly)
      expect(millis).toBeLessThan(withoutStream)
      expect(yield* reportedTexts(id)).toEqual(["@botbea before", "@botbea meanwhile", "@botbea after"])
    }),
  )

  it.effect("is disconnected when the Connector is paused and reconnected when it resumes", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ streaming: true })
      const { org_id, actor } = yield* listening(server, "cal")
      yield* ask(actor.Pause({ org_id, paused: true, everyone: false }, onBehalfOf(accountHolder)))
      yield* waitUntil(open(server), (count) => count === 0, 0)
      yield* ask(actor.Pause({ org_id, paused: false, everyone: false }, onBehalfOf(accountHolder)))
      yield* waitUntil(open(server), (count) => count === 1, "100 millis")
      yield* ask(actor.Disconnect({ org_id }, onBehalfOf(accountHolder)))
      yield* waitUntil(open(server), (count) => count === 0, 0)
    }),
  )

  it.effect("that opens no stream is retried rarely while polls continue", () =>
    Effect.gen(function* () {
      const server = yield* mastodonServer({ streaming: true, refusesStreams: true })
      const { id } = yield* connectedIdentity(server, "dan")
      yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
      server.world.publish(server.world.join("grace"), "@botdan now")
      yield* waitUntil(reportedTexts(id), (texts) => texts.length === 1, "1 second")
      yield* waitUntil(polls(server), (count) => count >= 6, "10 seconds")
      // One attempt for each way to send the token.
      expect(server.streams.asked()).toBe(2)
    }),
  )
})

const endless = (piece: (socket: WebSocket) => void) => (socket: WebSocket) => {
  const more = () => {
    for (let n = 0; n < 1_000 && socket.readyState === socket.OPEN && socket.bufferedAmount < 65_536; n++) piece(socket)
    if (socket.readyState === socket.OPEN) setImmediate(more)
  }
  more()
}

const harms: Readonly<Record<string, (socket: WebSocket) => void>> = {
  "sends a message without end": (socket) => {
    const half = "x".repeat(200_000)
    socket.send(half, { fin: false })
    socket.send(half, { fin: false })
  },
  "pings without end": endless((socket) => socket.ping("now")),
  "sends notifications without end": endless((socket) =>
    socket.send(JSON.stringify({ event: "notification", payload: JSON.stringify({ type: "mention" }) })),
  ),
  "sends data that is not of the API": endless((socket) => socket.send("[".repeat(10_000))),
}

layer(watched)("a malicious stream", (it) => {
  for (const [what, harm] of Object.entries(harms)) {
    it.effect(`that ${what} is closed, causes few polls and is retried with growing delays`, () =>
      Effect.gen(function* () {
        const closed: Array<number> = []
        const server = yield* mastodonServer({
          streaming: (socket) => {
            socket.on("close", () => closed.push(server.streams.opened()))
            harm(socket)
          },
        })
        const handle = `eve${Object.keys(harms).indexOf(what)}`
        const { id } = yield* connectedIdentity(server, handle)
        yield* waitUntil(rowOf(id), (row) => row?.mark != null, 0)
        // The clock does not advance, so the connection was closed because of the server's data and not by a timeout.
        yield* waitUntil(
          Effect.sync(() => closed.length),
          (count) => count > 0,
          0,
        )
        server.world.publish(server.world.join("grace"), `@bot${handle} heard`)
        yield* waitUntil(reportedTexts(id), (texts) => texts.length === 1, "1 second")
        expect(yield* polls(server)).toBeLessThanOrEqual(60)
        const tries = yield* opened(server)
        yield* waitUntil(polls(server), (count) => count >= 12, "10 seconds")
        const more = (yield* opened(server)) - tries
        expect(more).toBeGreaterThan(0)
        expect(more).toBeLessThanOrEqual(8)
        expect(yield* reportedTexts(id)).toHaveLength(1)
      }),
    )
  }
})

layer(watched)("a stream message", (it) => {
  const message = (event: string, payload: unknown) => JSON.stringify({ stream: ["user:notification"], event, payload })
  it.effect("requests a poll if it may concern the account", () =>
    Effect.sync(() => {
      expect(mayBeForUs(message("notification", JSON.stringify({ id: "1", type: "mention" })))).toBe(true)
      expect(mayBeForUs("x".repeat(100_000))).toBe(true)
      expect(mayBeForUs(message("notification", JSON.stringify({ id: "1", type: "favourite" })))).toBe(false)
      expect(mayBeForUs(message("update", "{}"))).toBe(false)
      expect(mayBeForUs("thump")).toBe(false)
    }),
  )
})
