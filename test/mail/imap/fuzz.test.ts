/**
 * Conversations with bytes changed, cut and put in, fed to sessions in portions: nothing throws, every session goes on or
 * ends, and what a session holds goes with it. `SVC_FUZZ_BYTES` says how many bytes are fed (300,000 where it says nothing),
 * `SVC_FUZZ_SEED` where the numbers begin.
 */
import { expect, it } from "vitest"
import { open, random, whole } from "./Sessions.ts"

const bits = [
  "(",
  ")",
  '"',
  "{3}\r\n",
  "{3+}\r\n",
  "~{4+}\r\n",
  "{70000+}\r\n",
  "{99999999999}\r\n",
  "{5+}\r\n",
  "*",
  "\\",
  "\0",
  "\r\n",
  "\n",
  " ",
  "1:*",
  "$",
  "4294967296",
  "-1",
  "[",
  "]<0.0>",
  "%",
  "&AOQ-",
  "NIL",
  "UID ",
  "NOT ",
  "OR ",
  "DONE\r\n",
  "\xff",
  "\xc3\xa4",
]

const wanted = Number(process.env["SVC_FUZZ_BYTES"] ?? 300_000)
const seed = Number(process.env["SVC_FUZZ_SEED"] ?? 11)

it("throws at nothing, whatever is said", { timeout: 120_000 + wanted / 5 }, async () => {
  const next = random(seed)
  const lines = whole.split(/(?<=\r\n)/)
  const shuffled = () => lines.toSorted(() => next() - 0.5).join("")
  const heap: Array<number> = []
  let fed = 0
  let defects = 0
  let held = 0
  for (let round = 0; fed < wanted; round++) {
    // The conversation in its order, and its lines in any.
    const text = round % 3 === 0 ? `1 LOGIN ada x\r\n2 SELECT INBOX\r\n${shuffled()}` : whole
    let bytes = Buffer.from(text, "latin1")
    for (let mutation = 0; mutation < 1 + next() * 8; mutation++) {
      const at = Math.floor(next() * bytes.length)
      const cut = next() < 0.5 ? Math.floor(next() * 20) : 0
      const put =
        next() < 0.2
          ? Buffer.from([Math.floor(next() * 256)])
          : Buffer.from(bits[Math.floor(next() * bits.length)]!, "latin1")
      bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)])
    }
    const session = await open()
    for (let at = 0; at < bytes.length;) {
      const size = 1 + Math.floor(next() * 1_500)
      const turn = await session.feed(bytes.subarray(at, at + size))
      at += size
      if (turn._tag !== "More") break
    }
    if (session.said().includes("SERVERBUG")) defects++
    // Each session has its own Mailbox: what it answers is bounded by the conversation, not by what came before.
    held = Math.max(held, session.said().length)
    fed += bytes.length
    if (round % 200 === 0) heap.push(process.memoryUsage().heapUsed)
  }
  expect(defects).toBe(0)
  expect(held).toBeLessThan(1024 * 1024)
  if (wanted > 1_000_000) {
    const of = (part: ReadonlyArray<number>) => Math.min(...part)
    const [early, late] = [heap.slice(2, heap.length / 2), heap.slice(heap.length / 2)].map(of)
    console.log(`${fed} bytes; heap at least ${early} then ${late}`)
    expect(late! - early!).toBeLessThan(32 * 1024 * 1024)
  }
})
