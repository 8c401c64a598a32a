/** Processes behind a client-side load balancer, which sends requests to ready processes only. */
import { setTimeout as sleep } from "node:timers/promises"
import { type Deployment, type Process, until } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"

/** Interval of the balancer's checks. A stopping process accepts requests for several intervals. */
const askMillis = 200
const delaySeconds = 2

interface Member {
  readonly process: Process
  readonly ops: string
  ready: boolean
}

export interface Fleet {
  /** Returns the ready members of a role in turn; waits if none is ready. */
  readonly next: () => Promise<Process>
  readonly all: () => ReadonlyArray<Process>
  /** Stops each member in turn and replaces it when it has ended. */
  readonly restart: () => Promise<void>
  readonly end: () => void
}

const isReady = async (ops: string) => {
  try {
    return (await fetch(`${ops}/readyz`, { signal: AbortSignal.timeout(5000) })).ok
  } catch {
    return false
  }
}

/** Starts several processes of one role. */
export const fleet = async (deployment: Deployment, role: string, size: number): Promise<Fleet> => {
  let members: ReadonlyArray<Member> = []
  let turn = 0
  let isRunning = true

  const start = async () => {
    const port = await freePort()
    const process = await deployment.start([role], {
      SVC_OPS_PORT: String(port),
      SVC_SHUTDOWN_DELAY: String(delaySeconds),
    })
    const member: Member = { process, ops: `http://127.0.0.1:${port}`, ready: false }
    await until(`${role} is ready`, () => isReady(member.ops), 60)
    member.ready = true
    members = [...members, member]
    void (async () => {
      while (isRunning && members.includes(member)) {
        member.ready = await isReady(member.ops)
        await sleep(askMillis)
      }
    })()
  }

  for (let at = 0; at < size; at++) await start()
  return {
    next: async () => {
      while (true) {
        const ready = members.filter((member) => member.ready)
        if (ready.length > 0) return ready[turn++ % ready.length]!.process
        await sleep(askMillis)
      }
    },
    all: () => members.map(({ process }) => process),
    restart: async () => {
      for (const member of members) {
        member.process.signal("SIGTERM")
        await member.process.exited
        members = members.filter((one) => one !== member)
        await start()
      }
    },
    end: () => {
      isRunning = false
    },
  }
}
