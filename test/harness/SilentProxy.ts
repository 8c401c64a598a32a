/** A TCP proxy whose connections can go silent: they stay open, but no bytes pass. */
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from "node:net"

export interface SilentProxy {
  readonly port: number
  /** Silences all current connections; later ones work. */
  readonly silence: () => number
  /** Silences all current and later connections, until they are restored. */
  readonly silenceAll: () => void
  /** Ends all connections; later ones work. */
  readonly restore: () => void
  readonly stop: () => Promise<void>
}

export const startSilentProxy = async (target: NetConnectOpts): Promise<SilentProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isSilent = false
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
    if (isSilent) silence(pair)
  })
  const silence = ([near, far]: readonly [Socket, Socket]) => {
    near.unpipe(far)
    far.unpipe(near)
    // Input is read and discarded, so that the peer's kernel sees it acknowledged.
    near.resume()
    far.resume()
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      for (const pair of pairs) silence(pair)
      return pairs.size
    },
    silenceAll: () => {
      isSilent = true
      for (const pair of pairs) silence(pair)
    },
    restore: () => {
      isSilent = false
      for (const [near] of pairs) near.destroy()
    },
    stop: async () => {
      for (const [near] of pairs) near.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
