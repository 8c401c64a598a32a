/** The messages between the bench and its load generator thread. */

/**
 * An HTTP request. `{worker}` and `{n}` in path and body are replaced by the numbers of the connection and the request.
 */
export interface Call {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The expected status; defaults to 200 to 299. */
  readonly status?: number
}

export type Order =
  | { readonly kind: "http"; readonly port: number; readonly connections: number; readonly call: Call }
  | {
      readonly kind: "smtp"
      readonly port: number
      readonly connections: number
      readonly recipients: ReadonlyArray<string>
    }

export interface Load {
  readonly done: number
  /** Number of responses with another status. */
  readonly wrong: number
  /** Actual duration, including requests that were in flight at the end. */
  readonly seconds: number
  readonly p50: number
  readonly p99: number
}

export const filled = (text: string, worker: number, n: number) =>
  text.replaceAll("{worker}", String(worker)).replaceAll("{n}", String(n))

export const percentileOf = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

/** Returns an unsigned message of 5 kB. */
export const letter = (to: string, n: string) =>
  `From: Bench <bench@example.org>\r\nTo: ${to}\r\nSubject: message ${n}\r\nMessage-ID: <${n}.${Math.random().toString(36)}@example.org>\r\n\r\n${"A line of text of a length that people write.\r\n".repeat(105)}end`
