/**
 * Ports that nothing listens on. They lie below the range from which systems give outgoing connections theirs, so that
 * none is taken between our look and its use; each process begins elsewhere.
 */
import { createServer } from "node:net"

const first = 10_000
const count = 20_000
let next = (process.pid * 97) % count

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Workers of the tests that run side by side, and who is none, so many of which have ranges of their own. */
const apart = 4

/**
 * The range of a deployment's Tunnels, above the one that outgoing connections take theirs from. Each worker's lie apart, and
 * ports are allotted from the beginning of a range on: an edge takes up a port of its own as soon as another lets go of it.
 */
export const portRange = (): string => {
  const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % apart
  const begin = 61_000 + worker * 1_100 + Math.floor(Math.random() * 25) * 20
  return `${begin}-${begin + 599}`
}

export const freePort = async (): Promise<number> => {
  while (true) {
    const port = first + (next++ % count)
    if (await isFree(port)) return port
  }
}
