/**
 * Mail programs that mean harm: connections by the thousand, logins that never end, literals that are begun and left,
 * lines without an end, floods of commands. An honest session and the health check go on meanwhile, from another address.
 */
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process } from "../harness/Deployment.ts"
import { ImapClient } from "../harness/Imap.ts"
import { percentile, round, type Row } from "../harness/Report.ts"

/** Of each kind. */
const seconds = 4
const rounds = 3

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

const said = ({ username, password }: Guest) => `a LOGIN "${username}" "${password}"\r\n`

/** Writes as fast as it is read. */
const flood = (socket: Socket, piece: string): void => {
  const bytes = Buffer.from(piece, "latin1")
  const go = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on("drain", go)
  go()
}

type Attack = (port: number, guest: Guest) => ReadonlyArray<Socket>

const times = (count: number, make: () => Socket): ReadonlyArray<Socket> => Array.from({ length: count }, make)

const attacks: Readonly<Record<string, Attack>> = {
  "connections that say nothing": (port) => times(2_000, () => opened(port)),
  "logins that fail": (port) =>
    times(100, () => {
      const socket = opened(port)
      const again = setInterval(() => socket.write("a LOGIN nobody@mail.localhost wrong\r\n"), 100)
      socket.once("close", () => clearInterval(again))
      return socket
    }),
  "literals left unfinished": (port, guest) =>
    times(60, () => {
      const socket = opened(port, `${said(guest)}b APPEND INBOX {20000000+}\r\n`)
      socket.write(Buffer.alloc(4 * 1024 * 1024, "x"))
      return socket
    }),
  "lines without an end": (port, guest) =>
    times(4, () => {
      const socket = opened(port, said(guest))
      flood(socket, "x".repeat(64 * 1024))
      return socket
    }),
  "commands by the thousand": (port, guest) =>
    times(4, () => {
      const socket = opened(port, `${said(guest)}b SELECT INBOX\r\n`)
      flood(socket, "c NOOP\r\nd FETCH 1:* (FLAGS)\r\ne SEARCH NOT OR SEEN OR DELETED FROM x\r\n".repeat(300))
      return socket
    }),
  "patterns and sets that cost": (port, guest) =>
    times(4, () => {
      const socket = opened(port, `${said(guest)}b SELECT INBOX\r\n`)
      const set = Array.from({ length: 5_000 }, (_, n) => n * 2 + 1).join(",")
      flood(socket, `c LIST "" "%*%*%*%*x"\r\nd UID FETCH ${set} (UID)\r\ne UID SEARCH ${"NOT ".repeat(15)}ALL\r\n`)
      return socket
    }),
  "large messages": (port, guest) =>
    times(2, () => {
      const socket = opened(port, said(guest))
      const message = `Subject: large\r\n\r\n${"0123456789".repeat(7).concat("\r\n").repeat(300_000)}`
      flood(socket, `b APPEND Trash {${message.length}+}\r\n${message}\r\n`)
      return socket
    }),
}

interface Waits {
  readonly imap: number
  readonly health: number
  readonly imapP99: number
  readonly healthP99: number
}

const waitsOf = async (work: () => Promise<unknown>, until: number) => {
  const took: Array<number> = []
  while (performance.now() < until) {
    const start = performance.now()
    await work()
    took.push(performance.now() - start)
    await sleep(5)
  }
  return took
}

const memoryOf = async ({ child }: Process): Promise<number> => {
  const { readFile } = await import("node:fs/promises")
  const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "")
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}

export const hostileImap = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start([], { SVC_MAILBOX_BYTES: String(2 ** 40) })
    const owner = await signUp(service.base)
    const [mine, theirs] = [
      await makeIdentity(service.base, owner.session),
      await makeIdentity(service.base, owner.session),
    ]
    // From another address of this machine, as another client.
    const { username, password } = mine.secrets.imap
    const honest = await ImapClient.login(service.imapPort, username, password, { localAddress: "127.0.0.2" })
    await honest.append("INBOX", "Subject: honest\n\ntext\n")
    await honest.say("SELECT INBOX")
    const phase = async (): Promise<Waits> => {
      const until = performance.now() + seconds * 1000
      const [imap, health] = await Promise.all([
        waitsOf(async () => {
          const { tagged } = await honest.say("FETCH 1 (FLAGS ENVELOPE BODY.PEEK[])")
          if (!tagged.startsWith("OK")) throw new Error(tagged)
        }, until),
        waitsOf(async () => (await fetch(`${service.base}/api/healthz`)).arrayBuffer(), until),
      ])
      return {
        imap: Math.max(...imap),
        health: Math.max(...health),
        imapP99: percentile(imap, 0.99),
        healthP99: percentile(health, 0.99),
      }
    }
    await phase()
    const rested = await memoryOf(service)
    const figures: Record<string, string | number> = {}
    let worst = 0
    for (const [name, attack] of Object.entries(attacks)) {
      const alone: Array<Waits> = []
      const beside: Array<Waits> = []
      for (let n = 0; n < rounds; n++) {
        alone.push(await phase())
        const sockets = attack(service.imapPort, theirs.secrets.imap)
        await sleep(500)
        beside.push(await phase())
        for (const socket of sockets) socket.destroy()
        await sleep(500)
      }
      const middle = (all: ReadonlyArray<Waits>, figure: (one: Waits) => number) => percentile(all.map(figure), 0.5)
      const more = (figure: (one: Waits) => number) => middle(beside, figure) - middle(alone, figure)
      worst = Math.max(
        worst,
        more(({ imap }) => imap),
        more(({ health }) => health),
      )
      figures[`${name}: session, health, worst ms more`] =
        `${round(more(({ imap }) => imap))}, ${round(more(({ health }) => health))}`
      figures[`${name}: p99 ms`] =
        `${round(middle(beside, ({ imapP99 }) => imapP99))}, ${round(middle(beside, ({ healthP99 }) => healthP99))}`
    }
    const grown = (await memoryOf(service)) - rested
    const { tagged } = await honest.say("NOOP")
    honest.close()
    return {
      id: "hostile-imap",
      ok: worst <= 50 && tagged.startsWith("OK") && grown < 400,
      what: `an honest session and the health check beside ${Object.keys(attacks).length} kinds of hostile clients, ${rounds} times ${seconds} s each in turn with nothing beside`,
      figures: { "worst ms more": round(worst), "MB more at the end": Math.round(grown), ...figures },
    }
  } finally {
    await deployment.stop()
  }
}
