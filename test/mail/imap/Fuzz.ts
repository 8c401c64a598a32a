/**
 * Feeds sessions with mutated conversations in random chunks. Runs as a program (`node --expose-gc Fuzz.ts <bytes>
 * <seed>`) that prints a line of JSON, because a test runner's own promises would be counted as leaks.
 */
import { open, random, fullConversation } from "./Sessions.ts"

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

const [wanted, seed] = process.argv.slice(2).map(Number) as [number, number]
const next = random(seed)
const lines = fullConversation.split(/(?<=\r\n)/)
const shuffled = () => lines.toSorted(() => next() - 0.5).join("")

const used = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

let fed = 0
let defects = 0
let longest = 0
let early: number | undefined
for (let round = 0; fed < wanted; round++) {
  // The conversation in order, and its lines in random order.
  const text = round % 3 === 0 ? `1 LOGIN ada x\r\n2 SELECT INBOX\r\n${shuffled()}` : fullConversation
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
  const output = session.said()
  if (output.includes("SERVERBUG")) defects++
  longest = Math.max(longest, output.length)
  await session.close()
  // Memory held until the end of a turn is only released if turns happen.
  await new Promise(setImmediate)
  fed += bytes.length
  if (early === undefined && fed > wanted / 4) early = used()
}
console.log(JSON.stringify({ fed, defects, longest, grown: used() - (early ?? 0) }))
