/**
 * Reads the heap size of a service after a collection through its inspector (`NODE_OPTIONS=--inspect=127.0.0.1:0`), and
 * its number of actors from its metrics (`SVC_OPS_PORT=0`).
 */
import type { Process } from "../harness/Deployment.ts"

export interface HeapUsage {
  /** Size of the heap and of external buffers. */
  readonly bytes: number
  readonly actors: number
}

const place = (service: Process, pattern: RegExp) => {
  const found = pattern.exec(service.output())?.[1]
  if (found === undefined) throw new Error(`the service did not print ${pattern}`)
  return found
}

export const of = async (service: Process) => {
  const socket = new WebSocket(place(service, /Debugger listening on (ws:\S+)/))
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve)
    socket.addEventListener("error", reject)
  })
  let requests = 0
  const answers = new Map<number, (answer: any) => void>()
  socket.addEventListener("message", ({ data }) => {
    const { id, result } = JSON.parse(String(data))
    answers.get(id)?.(result)
    answers.delete(id)
  })
  const ask = (method: string, params: object = {}): Promise<any> =>
    new Promise((resolve) => {
      answers.set(++requests, resolve)
      socket.send(JSON.stringify({ id: requests, method, params }))
    })
  const ops = place(service, /Operators +http:\/\/([\d.:]+)\//)
  const residents = async () => {
    const text = await (await fetch(`http://${ops}/metrics`)).text()
    return Number(/^effect_cluster_entities\{[^}]*type="Identity"[^}]*\} (\d+)/m.exec(text)?.[1] ?? Number.NaN)
  }
  const collected = async () => {
    await new Promise((resolve) => setTimeout(resolve, 300))
    await ask("HeapProfiler.collectGarbage")
    const { result } = await ask("Runtime.evaluate", {
      expression: "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())",
    })
    return result.value as number
  }
  return {
    /**
     * Collects garbage until a collection frees nothing more, since some objects are only released by later turns of
     * the event loop.
     */
    look: async (): Promise<HeapUsage> => {
      let bytes = await collected()
      for (let before = Number.POSITIVE_INFINITY; before - bytes > 0.002 * bytes;) {
        before = bytes
        bytes = await collected()
      }
      return { bytes, actors: await residents() }
    },
    close: () => socket.close(),
  }
}
