/** Random operations compared with an in-memory model, while the service is killed repeatedly. */
import { setTimeout as sleep } from "node:timers/promises"
import { makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { type Row } from "../harness/Report.ts"
import { ModelMismatch, Walker } from "./ModelWalker.ts"
import { randomBelow } from "./Random.ts"

const walkers = 8
const perCrash = 500

export const model = async (): Promise<Row> => {
  const operations = Number(process.env["FAULTS_OPERATIONS"] ?? 100_000)
  const seed = Number(process.env["FAULTS_SEED"] ?? Math.floor(Math.random() * 1_000_000))
  const deployment = await deploy()
  let isRunning = true
  try {
    let service = await deployment.start()
    const { session } = await signUp(service.base)
    const all: Array<Walker> = []
    for (let at = 0; at < walkers; at++) {
      const { handle } = await makeIdentity(service.base, session, newHandle("model"))
      all.push(new Walker(seed * walkers + at, handle, session, () => service.base))
    }
    const done = () => all.reduce((sum, walker) => sum + walker.operations, 0)
    let failure: unknown
    const walk = (walker: Walker, until: () => boolean) =>
      (async () => {
        while (isRunning && !until()) await walker.step()
      })().catch((error: unknown) => {
        failure ??= error
        isRunning = false
      })
    const draw = randomBelow(seed)
    let crashes = 0
    while (isRunning && done() < operations) {
      const next = Math.min(operations, done() + perCrash)
      const walking = Promise.all(all.map((walker) => walk(walker, () => done() >= next)))
      // The kill hits running operations, a random number of operations after the previous kill.
      const middle = done() + draw(perCrash)
      while (isRunning && done() < Math.min(middle, next)) await sleep(1)
      await sleep(draw(10))
      service.signal("SIGKILL")
      await service.exited
      crashes++
      service = await deployment.start()
      await walking
      await Promise.all(all.map((walker) => walker.compare())).catch((error: unknown) => {
        failure ??= error
        isRunning = false
      })
    }
    if (failure !== undefined && !(failure instanceof ModelMismatch)) throw failure
    return {
      id: "model",
      ok: failure === undefined,
      what: `${operations} operations of ${walkers} callers compared with an in-memory model, with a kill -9 every ${perCrash}`,
      figures: {
        seed,
        operations: done(),
        crashes,
        "repeated requests": all.reduce((sum, walker) => sum + walker.repeats, 0),
        differs: failure instanceof ModelMismatch ? failure.message : "nothing",
      },
      details: failure === undefined ? [] : [`again with FAULTS_SEED=${seed} FAULTS_OPERATIONS=${operations}`],
    }
  } finally {
    isRunning = false
    await deployment.stop()
  }
}
