/** Receives whole responses up to a size limit, and shows the beginning of response bodies as text. */
import { Effect } from "effect"
import type { Dispatcher } from "undici"

/** A request whose whole response is buffered. */
export interface BufferedRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Largest response body in bytes; a longer one fails with `too_large`. */
  readonly atMost: number
}

export interface BufferedResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

/** Returns the JSON of a response; undefined if its type or its content is not JSON. */
export const jsonOf = ({ headers, body }: BufferedResponse): unknown => {
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) return undefined
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

/** Returns `max-age` within bounds, so that changes are noticed and no server can force a request each time. */
export const freshFor = (
  headers: Headers,
  { least, most }: { readonly least: number; readonly most: number },
): number => {
  const seconds = Number(/(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers.get("cache-control") ?? "")?.[1] ?? "0")
  return Math.min(Math.max(seconds * 1000, least), most)
}

export interface BeginningOfResponse {
  readonly statusCode: number
  /** The beginning of the body, or null if it is empty. */
  readonly text: string | null
}

export class TooLarge extends Error {}

/** The reason for aborting a request whose remaining response is not needed. */
class Enough extends Error {}

/** The permission to send has expired before the request was written. */
export class Withdrawn extends Error {}

/**
 * Returns a handler that receives a whole response. It checks `isPermitted` in the turn in which the request is written,
 * because the request may have waited for its connection.
 */
export const collecting = (
  atMost: number,
  isPermitted: () => boolean,
  resume: (exit: Effect.Effect<BufferedResponse, Error>) => void,
) => {
  const aborting = abortable()
  const headers = new Headers()
  const chunks: Array<Buffer> = []
  let status = 0
  let read = 0
  return {
    cancel: aborting.cancel,
    onRequestStart: (controller: Dispatcher.DispatchController) => {
      if (isPermitted()) aborting.started(controller)
      else controller.abort(new Withdrawn())
    },
    onResponseStart: (
      _: Dispatcher.DispatchController,
      statusCode: number,
      received: Record<string, string | Array<string> | undefined>,
    ) => {
      status = statusCode
      for (const [name, value] of Object.entries(received)) {
        for (const field of typeof value === "string" ? [value] : (value ?? [])) headers.append(name, field)
      }
    },
    onResponseData: (receiving: Dispatcher.DispatchController, chunk: Buffer) => {
      read += chunk.length
      if (read <= atMost) return void chunks.push(chunk)
      resume(Effect.fail(new TooLarge()))
      receiving.abort(new Enough())
    },
    onResponseEnd: () => resume(Effect.succeed({ status, headers, body: Buffer.concat(chunks) })),
    onResponseError: (_: Dispatcher.DispatchController, error: Error) => resume(Effect.fail(error)),
  }
}

/** Returns a handle that cancels a request, even before it is sent. */
const abortable = () => {
  let controller: Dispatcher.DispatchController | undefined
  let cancelled = false
  return {
    cancel: () => {
      cancelled = true
      controller?.abort(new Enough())
    },
    isCancelled: () => cancelled,
    started: (started: Dispatcher.DispatchController) => {
      controller = started
      if (cancelled) started.abort(new Enough())
    },
  }
}

/** Number of bytes of a response body that are read, so that its connection can be used again. */
const readAtMost = 64 * 1024

/** Number of bytes of a response body that are stored to be shown. */
const shownAtMost = 1024

/** Returns the beginning of a body as storable text without a truncated last character, or null if it is empty. */
export const shownText = (beginning: Buffer): string | null =>
  beginning.length === 0 ? null : new TextDecoder().decode(beginning, { stream: true }).replaceAll("\0", "\uFFFD")

/** Returns a handler that reads the status, and as much of the body as is shown. */
export const readingBeginning = (resume: (exit: Effect.Effect<BeginningOfResponse, Error>) => void) => {
  const aborting = abortable()
  let status = 0
  let read = 0
  let begins = Buffer.alloc(0)
  const end = () => resume(Effect.succeed({ statusCode: status, text: shownText(begins) }))
  const failed = (error: Error) => resume(Effect.fail(error))
  return {
    cancel: aborting.cancel,
    isCancelled: aborting.isCancelled,
    failed,
    onRequestStart: aborting.started,
    onResponseStart: (_: Dispatcher.DispatchController, statusCode: number) => {
      status = statusCode
    },
    onResponseData: (receiving: Dispatcher.DispatchController, chunk: Buffer) => {
      if (begins.length < shownAtMost) begins = Buffer.concat([begins, chunk.subarray(0, shownAtMost - begins.length)])
      read += chunk.length
      if (read <= readAtMost) return
      // The status is known, and the rest of the body is not needed.
      end()
      receiving.abort(new Enough())
    },
    onResponseEnd: end,
    onResponseError: (_: Dispatcher.DispatchController, error: Error) => failed(error),
  }
}
