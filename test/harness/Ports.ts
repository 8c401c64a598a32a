/**
 * Allocates free ports below the ephemeral range, so that no outgoing connection takes one before its use. Each process
 * starts at a different port, and each worker uses every eighth.
 */
import { createServer } from "node:net"

const worker = Number(process.env["VITEST_POOL_ID"] ?? 0)

/** Number of workers, including processes outside of a test run, that get separate ports. */
const lanes = 8
const first = 10_000
const each = 20_000 / lanes
let next = (process.pid * 97) % each

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Number of workers with separate ranges. */
const apart = 4

/**
 * Returns the range of a deployment's Tunnels, above the ephemeral ports. Workers get separate ranges. Ports are
 * allotted from the start of a range, and an edge occupies a port as soon as another releases it.
 */
export const portRange = (): string => {
  const begin = 61_000 + (worker % apart) * 1_100 + Math.floor(Math.random() * 25) * 20
  return `${begin}-${begin + 599}`
}

export const freePort = async (): Promise<number> => {
  while (true) {
    const port = first + (next++ % each) * lanes + (worker % lanes)
    if (await isFree(port)) return port
  }
}
