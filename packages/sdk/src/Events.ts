/** The live stream of Events (Server-Sent Events), resumed after a lost connection. */
import type { Event } from "./generated.ts"
import { ApiError } from "./Errors.ts"
import { pause, type Transport } from "./Transport.ts"

export interface EventStreamOptions {
  readonly signal?: AbortSignal
  /** The id of the last Event that was handled: the stream continues after it. By default, the stream starts with the next Event. */
  readonly after?: string
}

interface Frame {
  id?: string
  data: string
}

/** Parses the lines of a stream into frames (HTML Living Standard, section 9.2). */
const frames = async function* (body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let rest = ""
  let frame: Frame = { data: "" }
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()!
      for (const line of lines) {
        if (line === "") {
          if (frame.data !== "" || frame.id !== undefined) yield frame
          frame = { data: "" }
          continue
        }
        const [, field, text = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []
        if (field === "id") frame.id = text
        if (field === "data") frame.data += frame.data === "" ? text : `\n${text}`
      }
    }
  } finally {
    // Ends the request when the caller stops reading.
    await reader.cancel().catch(() => undefined)
  }
}

/**
 * Yields Events as they happen. A lost connection is opened again after the last Event that was yielded. The next Event is
 * read when the caller asks for it, so a slow caller slows the stream. Throws if the service refuses the stream for good.
 */
export const streamEvents = async function* (
  transport: Transport,
  path: string,
  { signal, after }: EventStreamOptions = {},
): AsyncGenerator<Event, void> {
  let last = after
  const isAborted = () => signal?.aborted === true
  for (let failures = 0; !isAborted(); failures++) {
    try {
      const response = await transport.send(
        { method: "GET", path, waitSeconds: 24 * 3600 },
        {
          retries: 0,
          headers: { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) },
          ...(signal === undefined ? {} : { signal }),
        },
      )
      for await (const { id, data } of frames(response.body!)) {
        // The first frame has an id and no data: the position at which the stream begins.
        last = id ?? last
        if (data === "") continue
        failures = 0
        yield JSON.parse(data) as Event
      }
    } catch (error) {
      if (isAborted()) return
      if (error instanceof ApiError && error.agentHint !== "wait") throw error
    }
    await pause(Math.min(250 * 2 ** failures, 10_000), signal).catch(() => undefined)
  }
}
