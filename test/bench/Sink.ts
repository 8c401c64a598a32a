/** A Webhook receiver in its own thread that responds and counts, so that receiving is not part of the measurement. */
import { once } from "node:events"
import { createServer } from "node:http"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"

export interface Sink {
  readonly url: string
  readonly count: () => number
  readonly stop: () => Promise<unknown>
}

export const startSink = async (): Promise<Sink> => {
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(new URL(import.meta.url), { workerData: counter })
  const [port] = (await once(thread, "message")) as [number]
  return {
    url: `http://127.0.0.1:${port}/hook`,
    count: () => Atomics.load(counter, 0),
    stop: () => thread.terminate(),
  }
}

if (!isMainThread) {
  const counter = workerData as Int32Array
  const server = createServer((incoming, answer) => {
    incoming.resume()
    incoming.on("end", () => {
      Atomics.add(counter, 0, 1)
      answer.end()
    })
  })
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    if (typeof address === "object") parentPort!.postMessage(address?.port)
  })
}
