/**
 * Cuts connections of a service to PostgreSQL at random, when loaded into it (`NODE_OPTIONS=--import <this file>`). `SIGUSR2`
 * starts and ends the cutting. `CUT_PER_MILLE` is the share of all writes to PostgreSQL at which a connection is cut.
 */
import { Socket } from "node:net"
import { isMainThread } from "node:worker_threads"
import { randomBelow } from "../Random.ts"

/** How long after a write its connection may be cut. PostgreSQL may be running the statement, or have run it. */
const laterMillis = 4

if (isMainThread) {
  const draw = randomBelow(Number(process.env["CUT_SEED"]))
  const perMille = Number(process.env["CUT_PER_MILLE"])
  let isCutting = false
  process.on("SIGUSR2", () => (isCutting = !isCutting))

  const toStore = new WeakSet<Socket>()
  const { connect, write } = Socket.prototype
  const cut = (socket: Socket) => void socket.destroy(Object.assign(new Error("cut"), { code: "ECONNRESET" }))

  /** Cuts the connection instead of handing over the next response, so that only the response is lost. */
  const cutAtResponse = (socket: Socket) => {
    const { emit } = socket
    socket.emit = (name: string | symbol, ...values: ReadonlyArray<unknown>) => {
      if (name !== "data") return emit.call(socket, name, ...values)
      socket.emit = emit
      cut(socket)
      return true
    }
  }

  // The driver connects to the embedded server by the path of its socket.
  Socket.prototype.connect = function (this: Socket, ...values: ReadonlyArray<any>) {
    const [target] = values.flat()
    if (String(target?.path ?? target).includes(".s.PGSQL")) toStore.add(this)
    return connect.apply(this, values as Parameters<typeof connect>)
  } as typeof connect

  Socket.prototype.write = function (this: Socket, ...values: ReadonlyArray<any>) {
    if (isCutting && toStore.has(this) && !this.destroyed && draw(1000) < perMille) {
      const moment = draw(10)
      if (moment < 2) {
        cut(this)
        return false
      }
      if (moment < 5) setTimeout(() => cut(this), draw(laterMillis + 1))
      else cutAtResponse(this)
    }
    return write.apply(this, values as Parameters<typeof write>)
  } as typeof write
}
