/** A mail protocol's listening socket: opened with its layer, or the reason said in words. */
import type { Server } from "node:net"
import { Effect, Schema } from "effect"

export class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", { message: Schema.String }) {}

/** Succeeds once `socket` listens; `listen` is how its owner has it do so. */
export const listening = (
  protocol: string,
  socket: Server,
  host: string,
  port: number,
  listen: (port: number, host: string, listening: () => void) => void,
) =>
  Effect.callback<void, ListenFailed>((resume) => {
    socket.once("error", (error) =>
      resume(
        Effect.fail(new ListenFailed({ message: `${protocol} cannot listen on ${host}:${port}: ${error.message}` })),
      ),
    )
    listen(port, host, () => resume(Effect.void))
  })

/** Where it listens, which the system chose if `wanted` is 0. */
export const portOf = (socket: Server, wanted: number): number => {
  const address = socket.address()
  return typeof address === "object" && address !== null ? address.port : wanted
}
