/**
 * Malicious IMAP clients: thousands of connections, logins that never end, incomplete literals, lines without an end,
 * floods of commands. A regular session and the health check continue from another address.
 *
 * The row checks the longest CPU time for which the event loop was blocked ({@link module:TurnMeter}), and that
 * everyone was served. Response times depend too much on the machine, which the attackers share.
 *
 * With the arguments `attack <name> <port> <user> <password>`, it runs that attack in its own process.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process } from "../harness/Deployment.ts"
import { ImapClient } from "../harness/Imap.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { times } from "./Load.ts"
import { turnsIn, waitsOf } from "./Waits.ts"

/** The duration of each attack. */
const seconds = 4
const rounds = times(3)

interface Guest {
  readonly username: string
  readonly password: string
}

const opened = (port: number, first = ""): Socket => {
  const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.1" })
  socket.on("error", () => {})
  socket.on("data", () => {})
  if (first !== "") socket.write(first, "latin1")
  return socket
}

const loginCommand = ({ username, password }: Guest) => `a LOGIN "${username}" "${password}"\r\n`

/** Writes as fast as the peer reads. */
const flood = (socket: Socket, piece: string): void => {
  const bytes = Buffer.from(piece, "latin1")
  const go = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on("drain", go)
  go()
}

type Attack = (port: number, guest: Guest) => void

const many = (count: number, make: () => Socket): void => {
  for (let n = 0; n < count; n++) {
    // Reopens a connection that the service closes.
    const repeat = () => void make().once("close", () => setTimeout(repeat, 1_000))
    repeat()
  }
}

const attacks: Readonly<Record<string, Attack>> = {
  "silent connections": (port) => many(2_000, () => opened(port)),
  "failing logins": (port) =>
    many(100, () => {
      const socket = opened(port)
      const repeat = setInterval(() => socket.write("a LOGIN nobody@mail.localhost wrong\r\n"), 100)
      socket.once("close", () => clearInterval(repeat))
      return socket
    }),
  "incomplete literals": (port, guest) =>
    many(60, () => {
      const socket = opened(port, `${loginCommand(guest)}b APPEND INBOX {20000000+}\r\n`)
      socket.write(Buffer.alloc(4 * 1024 * 1024, "x"))
      return socket
    }),
  "lines without an end": (port, guest) =>
    many(4, () => {
      const socket = opened(port, loginCommand(guest))
      flood(socket, "x".repeat(64 * 1024))
      return socket
    }),
  "floods of commands": (port, guest) =>
    many(4, () => {
      const socket = opened(port, `${loginCommand(guest)}b SELECT INBOX\r\n`)
      flood(socket, "c NOOP\r\nd FETCH 1:* (FLAGS)\r\ne SEARCH NOT OR SEEN OR DELETED FROM x\r\n".repeat(300))
      return socket
    }),
  "expensive patterns and sets": (port, guest) =>
    many(4, () => {
      const socket = opened(port, `${loginCommand(guest)}b SELECT INBOX\r\n`)
      const set = Array.from({ length: 5_000 }, (_, n) => n * 2 + 1).join(",")
      flood(socket, `c LIST "" "%*%*%*%*x"\r\nd UID FETCH ${set} (UID)\r\ne UID SEARCH ${"NOT ".repeat(15)}ALL\r\n`)
      return socket
    }),
  "large messages": (port, guest) =>
    many(2, () => {
      const socket = opened(port, loginCommand(guest))
      const message = `Subject: large\r\n\r\n${"0123456789".repeat(7).concat("\r\n").repeat(300_000)}`
      flood(socket, `b APPEND Trash {${message.length}+}\r\n${message}\r\n`)
      return socket
    }),
}

/** Latencies in milliseconds. */
interface Waits {
  readonly held: number
  readonly imap: number
  readonly health: number
}

const memoryOf = async ({ child }: Process): Promise<number> => {
  const { readFile } = await import("node:fs/promises")
  const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "")
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}

/** Maximum CPU time in milliseconds for which the event loop may be blocked, and maximum memory growth in MB. */
const heldAtMost = 50
const grownAtMost = 400

export const hostileImap = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const meter = path.join(import.meta.dirname, "TurnMeter.ts")
    const service = await deployment.start([], {
      SVC_MAILBOX_BYTES: String(2 ** 40),
      NODE_OPTIONS: `--import=${meter}`,
    })
    /** Returns the longest turn that the meter has reported after `from` characters of output. */
    const heldSince = (from: number): number => Math.max(0, ...turnsIn(service.output().slice(from)))
    const owner = await signUp(service.base)
    const [mine, theirs] = [
      await makeIdentity(service.base, owner.session),
      await makeIdentity(service.base, owner.session),
    ]
    // Connects from another loopback address, as a different client.
    const { username, password } = mine.secrets.imap
    const honest = await ImapClient.login(service.imapPort, username, password, { localAddress: "127.0.0.2" })
    await honest.append("INBOX", "Subject: honest\n\ntext\n")
    await honest.say("SELECT INBOX")
    const phase = async (): Promise<Waits> => {
      const from = service.output().length
      const until = performance.now() + seconds * 1000
      const [imap, health] = await Promise.all([
        waitsOf(async () => {
          const { tagged } = await honest.say("FETCH 1 (FLAGS ENVELOPE BODY.PEEK[])")
          if (!tagged.startsWith("OK")) throw new Error(tagged)
        }, until),
        waitsOf(async () => {
          const response = await fetch(`${service.base}/api/healthz`)
          await response.arrayBuffer()
          if (!response.ok) throw new Error(`the health check: ${response.status}`)
        }, until),
      ])
      return { held: heldSince(from), imap: percentile(imap, 0.99), health: percentile(health, 0.99) }
    }
    const beside = async (attack: string): Promise<Waits> => {
      const { imap } = theirs.secrets
      const words = ["attack", attack, String(service.imapPort), imap.username, imap.password]
      const child = spawn(process.execPath, [import.meta.filename, ...words], { stdio: ["ignore", "pipe", "inherit"] })
      const exited = once(child, "exit")
      try {
        await once(child.stdout, "data")
        await sleep(500)
        return await phase()
      } finally {
        child.kill("SIGKILL")
        await exited
        await sleep(500)
      }
    }
    await phase()
    const rested = await memoryOf(service)
    const figures: Record<string, string | number> = {}
    let worst = 0
    for (const name of Object.keys(attacks)) {
      const [alone, attacked]: [Array<Waits>, Array<Waits>] = [[], []]
      for (let n = 0; n < rounds; n++) {
        alone.push(await phase())
        attacked.push(await beside(name))
      }
      const middle = (all: ReadonlyArray<Waits>, figure: keyof Waits) =>
        round(
          percentile(
            all.map((one) => one[figure]),
            0.5,
          ),
        )
      const figureOf = (figure: keyof Waits) => `${middle(alone, figure)} / ${middle(attacked, figure)}`
      worst = Math.max(worst, middle(attacked, "held"))
      figures[`held ms, ${name}`] = figureOf("held")
      figures[`session p99 ms, ${name}`] = figureOf("imap")
      figures[`health p99 ms, ${name}`] = figureOf("health")
    }
    // Memory that is returned after the attacks is no leak.
    let grown = Infinity
    for (let n = 0; n < 15 && grown >= grownAtMost; n++) {
      await sleep(n === 0 ? 0 : 2000)
      grown = (await memoryOf(service)) - rested
    }
    const { tagged } = await honest.say("NOOP")
    honest.close()
    return {
      id: "hostile-imap",
      ok: worst <= heldAtMost && tagged.startsWith("OK") && grown < grownAtMost,
      what: `a regular session and the health check alone / beside ${Object.keys(attacks).length} kinds of hostile clients, ${rounds} times ${seconds} s each in turn; limit for blocking the event loop: ${heldAtMost} ms of CPU`,
      figures: { "longest block ms": round(worst), "MB more at the end": Math.round(grown), ...figures },
    }
  } finally {
    await deployment.stop()
  }
}

const [verb, name, port, username, password] = process.argv.slice(2)
if (verb === "attack" && name !== undefined && port !== undefined && username !== undefined && password !== undefined) {
  attacks[name]!(Number(port), { username, password })
  console.log("begun")
}
