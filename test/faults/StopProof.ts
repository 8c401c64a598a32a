/**
 * Stops and deletes Identities while three processes issue tokens and sign requests for them. A request that begins after
 * the response to the stop or the deletion gets nothing.
 */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"

/** Requests that begin after each response. */
const tries = 25
const times = Number(process.env["FAULTS_TIMES"] ?? 20)

/** Requests a token or a signature in turn. Returns the status. */
const request = async (base: string, handle: string, token: string, at: number) => {
  const [what, body] =
    at % 2 === 0
      ? ["tokens", { audience: "api.example", algorithm: "ES256" }]
      : ["signatures", { method: "GET", url: "https://shop.example/" }]
  return (await call(base, "POST", `/api/identities/${handle}/${what}`, { token, body })).status
}

export const stopProof = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const [first, ...others] = [
      await deployment.start(["actors", "api"]),
      await deployment.start(["api"]),
      await deployment.start(["api"]),
    ]
    const processes: ReadonlyArray<Process> = [first!, ...others]
    const baseOf = (at: number) => processes[at % processes.length]!.base
    const { session } = await signUp(first!.base)
    let before = 0
    let asked = 0
    let afterStop = 0
    let afterDeletion = 0
    /** Requests of all processes that begin now. */
    const late = async (handle: string) => {
      const found = await Promise.all(
        Array.from({ length: tries }, (_, at) => request(baseOf(at), handle, session, at + (asked % 2))),
      )
      asked += found.length
      return found.filter((status) => status === 201).length
    }
    for (let round = 0; round < times; round++) {
      const { handle } = await makeIdentity(first!.base, session)
      const path = `/api/identities/${handle}`
      const change = (outgoing: string) =>
        call(baseOf(round), "PATCH", `${path}/mail`, { token: session, body: { outgoing } })
      let isRunning = true
      const callers = Array.from({ length: processes.length * 2 }, async (_, at) => {
        for (let n = at; isRunning; n++) if ((await request(baseOf(at), handle, session, n)) === 201) before++
      })
      try {
        const seen = before
        await until("proofs are made", async () => before > seen + processes.length, 30)
        await until("the stop", async () => (await change("stopped")).status === 200, 30)
        afterStop += await late(handle)
        await until("the end of the stop", async () => (await change("active")).status === 200, 30)
        const again = before
        await until("proofs are made again", async () => before > again + processes.length, 30)
        await until(
          "the deletion",
          async () => (await call(baseOf(round + 1), "DELETE", path, { token: session })).status < 300,
          30,
        )
        afterDeletion += await late(handle)
      } finally {
        isRunning = false
        await Promise.all(callers)
      }
    }
    return {
      id: "stop-proof",
      ok: afterStop === 0 && afterDeletion === 0 && before > times && asked === times * tries * 2,
      what: `${times} Identities stopped and deleted while three processes issue tokens and sign requests for them`,
      figures: {
        "made before": before,
        "requested afterwards": asked,
        "made after the stop returned": afterStop,
        "made after the deletion returned": afterDeletion,
      },
    }
  } finally {
    await deployment.stop()
  }
}
