/** A TCP proxy whose connections can go silent: they stay open, but no bytes pass. */
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from "node:net"

export interface SilentProxy {
  readonly port: number
  /** Silences all current connections; later ones work. */
  readonly silence: () => number
  readonly stop: () => Promise<void>
}

export const startSilentProxy = async (target: NetConnectOpts): Promise<SilentProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>()
  const server = createServer((near) => {
    const far = connect(target)
    const pair = [near, far] as const
    pairs.add(pair)
    const end = () => {
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    for (const socket of pair) socket.on("error", end).on("close", end)
    near.pipe(far)
    far.pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far)
        far.unpipe(near)
        // Input is read and discarded, so that the peer's kernel sees it acknowledged.
        near.resume()
        far.resume()
      }
      return pairs.size
    },
    stop: async () => {
      for (const [near] of pairs) near.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
