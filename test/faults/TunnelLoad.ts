/** Regular clients of a tunnel, which record what they observe during a fault. */
import { request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"

export const get = (port: number, handle: string) =>
  new Promise<number>((resolve) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        path: "/",
        agent: false,
        headers: { host: `${handle}.tunnel.localhost` },
        timeout: 10_000,
      },
      (incoming) => {
        incoming.resume()
        incoming.on("end", () => resolve(incoming.statusCode ?? 0))
        incoming.on("error", () => resolve(0))
      },
    )
    outgoing.on("error", () => resolve(0))
    outgoing.on("timeout", () => outgoing.destroy())
    outgoing.end()
  })

export interface Observed {
  answered: number
  failed: number
  longestGapMillis: number
  readonly waits: Array<number>
}

/** Sends requests over 8 connections for some milliseconds. */
export const load = async (port: number, handle: string, millis: number): Promise<Observed> => {
  const seen: Observed = { answered: 0, failed: 0, longestGapMillis: 0, waits: [] }
  const end = Date.now() + millis
  let last = Date.now()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (Date.now() < end) {
        const start = performance.now()
        const status = await get(port, handle)
        seen.waits.push(performance.now() - start)
        if (status === 200) {
          seen.answered++
          seen.longestGapMillis = Math.max(seen.longestGapMillis, Date.now() - last)
          last = Date.now()
        } else seen.failed++
        await sleep(2)
      }
    }),
  )
  return seen
}
