/** The process rows: startup time and memory without requests. */
import { setTimeout as sleep } from "node:timers/promises"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { family, measurable, memoryOf, millisOf } from "./Processes.ts"
import * as References from "./References.ts"

/** Measures the time from launch to a healthy response, with an empty data directory and with an existing one. */
export const start = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const launch = async () => {
      const begin = performance.now()
      const service = await deployment.start()
      const millis = Math.round(performance.now() - begin)
      const cpu = millisOf(service.child.pid!)
      service.signal("SIGTERM")
      await service.exited
      return { millis, cpu }
    }
    const first = await launch()
    const later = [await launch(), await launch(), await launch()]
    const least = (of: (one: typeof first) => number) => Math.min(...later.map(of))
    const median = (of: (one: typeof first) => number) => percentile(later.map(of), 0.5)
    return {
      id: "start",
      ok: true,
      what: "launch to the first healthy response with all roles: the first start, which creates the database, and three later ones",
      goals: [
        { what: "first ms", value: first.millis, atMost: 4_000 },
        { what: "later ms", value: least(({ millis }) => millis), atMost: 1_500 },
        ...(measurable ? [{ what: "later CPU ms", value: least(({ cpu }) => cpu), atMost: 1_000 }] : []),
      ],
      figures: {
        "later ms median": median(({ millis }) => millis),
        ...(measurable ? { "later CPU ms median": median(({ cpu }) => cpu), "first CPU ms": first.cpu } : {}),
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Memory of the service in MB before it was reduced. The goal is to halve the amount above the floor. */
const before = 245
const idleSeconds = 8

/** Measures the idle memory of all roles next to that of the floor; the rest is Node's and Effect's. */
export const memory = async (): Promise<Row> => {
  if (!measurable)
    return { id: "memory", ok: true, what: "resident memory: not measurable on this system", figures: {} }
  const deployment = await deploy()
  const floor = await References.floor()
  try {
    const service = await deployment.start()
    await sleep(idleSeconds * 1_000)
    const ours = memoryOf(service.child.pid!)
    const least = memoryOf(floor.pid)
    const store = family(deployment.postgres()).reduce((sum, pid) => sum + memoryOf(pid).own, 0)
    return {
      id: "memory",
      ok: true,
      what: "resident memory in MB with all roles idle, compared with the floor",
      goals: [
        {
          what: "MB above the floor",
          value: Math.round(ours.resident - least.resident),
          atMost: Math.round((before - least.resident) / 2),
        },
      ],
      figures: {
        "ours MB": round(ours.resident, 0),
        "ours private MB": round(ours.own, 0),
        "ours mapped files MB": round(ours.files, 0),
        "floor MB": round(least.resident, 0),
        "floor private MB": round(least.own, 0),
        "PostgreSQL private MB": round(store, 0),
      },
    }
  } finally {
    floor.stop()
    await deployment.stop()
  }
}
