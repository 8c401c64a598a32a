/** An answer that is wanted whole, of at most so many bytes. */
import { Effect } from "effect"
import type { Dispatcher } from "undici"

/** A request whose answer is wanted, all of it. */
export interface BufferedRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Bytes of the answer's body; what is longer is `too_large`. */
  readonly atMost: number
}

export interface BufferedResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

export class TooLarge extends Error {}

/** Nobody wants more of the answer. */
export class Enough extends Error {}

/** The permission to leave has expired: nothing of the request was written. */
export class Withdrawn extends Error {}

/**
 * Takes the whole of an answer that is not longer than that. `isPermitted` is looked at in the turn in which the request is
 * written: it may have waited for its connection.
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
        for (const one of typeof value === "string" ? [value] : (value ?? [])) headers.append(name, one)
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

/** What ends a request whose asker has gone, also when it was not sent yet. */
export const abortable = () => {
  let controller: Dispatcher.DispatchController | undefined
  let cancelled = false
  return {
    cancel: () => {
      cancelled = true
      controller?.abort(new Enough())
    },
    started: (started: Dispatcher.DispatchController) => {
      controller = started
      if (cancelled) started.abort(new Enough())
    },
  }
}
