/** A connection to Bluesky whose calls are answered by the test. */
import type { Connection } from "@svc/cluster/connectors/platforms/bluesky/Connection"
import { type PlatformFailure, PlatformRefused, PlatformUnreachable } from "@svc/cluster/connectors/platforms/Failure"
import { Effect } from "effect"

export const did = "did:plc:own"
export type Handler = (asked: any) => unknown

/** A connection whose calls, by the last part of their name, are answered by the handlers. */
export const connected = (handlers: Readonly<Record<string, Handler>>) => {
  const sent: Array<[string, any]> = []
  const agent: any = new Proxy(
    {},
    {
      get: (_, name: string) =>
        handlers[name] === undefined
          ? agent
          : async (asked: unknown) => {
              sent.push([name, asked])
              return { data: handlers[name]!(asked) }
            },
    },
  )
  const call = (run: () => Promise<unknown>) =>
    Effect.tryPromise({ try: run, catch: (error) => error as PlatformFailure })
  return {
    connection: { agent, chat: agent, did, service: "https://pds.example", call } as unknown as Connection,
    sent,
  }
}
const raise = (failure: unknown): never => {
  throw failure
}
export const missing = () => raise(new PlatformRefused({ message: "none", missing: true }))
export const refused = () => raise(new PlatformRefused({ message: "no" }))
export const down = () => raise(new PlatformUnreachable({ message: "down" }))
