/** Callers during a fault: what was acknowledged, what they observed, and how long they waited. */
import { call } from "../harness/Client.ts"
import { percentile, round } from "../harness/Report.ts"

export interface Outcome {
  /** Number of calls with the expected response. */
  acknowledged: number
  /** Other responses, by status and code. */
  readonly errors: Map<string, number>
  readonly waits: Array<number>
}

/** Returns the number of faults to inject: the given one, or `FAULTS_TIMES`. */
export const times = (usually: number): number => Number(process.env["FAULTS_TIMES"] ?? usually)

export const outcome = (): Outcome => ({ acknowledged: 0, errors: new Map(), waits: [] })

export const note = (into: Outcome, error: string) => into.errors.set(error, (into.errors.get(error) ?? 0) + 1)

/** Makes a call, and records its time and failure. Returns undefined unless it was acknowledged. */
export const timed = async (
  into: Outcome,
  expected: number,
  base: string,
  method: string,
  path: string,
  options: Parameters<typeof call>[3],
) => {
  const start = performance.now()
  try {
    const answer = await call(base, method, path, options)
    into.waits.push(performance.now() - start)
    if (answer.status === expected) {
      into.acknowledged++
      return answer
    }
    note(into, `${answer.status} ${answer.body?.code}`)
  } catch (error) {
    into.waits.push(performance.now() - start)
    note(
      into,
      error instanceof Error ? ((error.cause as { code?: string } | undefined)?.code ?? error.message) : String(error),
    )
  }
  return undefined
}

export const figures = ({ acknowledged, errors, waits }: Outcome) => ({
  acknowledged,
  errors: [...errors].map(([error, count]) => `${count}×${error}`).join(", ") || "none",
  "p50 ms": round(percentile(waits, 0.5), 1),
  "longest ms": Math.round(Math.max(...waits)),
})
