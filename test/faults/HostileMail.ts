/**
 * Sends mail that costs more to read than to send. The CPU time of each message decides, in the event loop and in the
 * whole process, compared with harmless mail of the same size: other load on the machine does not matter then. The waits
 * of a regular sender and of the health check beside such mail are goals.
 *
 * With the arguments `send <port> <recipient> <hostile|harmless>` this file sends that mail in a separate process.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { times } from "./Load.ts"
import { waitsOf } from "./Waits.ts"

const head = "From: Mallory <m@[127.0.0.1]>\r\nSubject: hostile\r\n"
const mixed = `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n`
const signature = (tags: string) =>
  `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=x; s=s; h=from; ${tags}bh=AAAA; b=AAAA\r\n`
/** Small, so that the cost is in reading the message and not in storing it. */
const size = 250 * 1024

const of = (top: string, piece: string, bytes: number): string => top + piece.repeat(Math.floor(bytes / piece.length))

const nested = (): string => {
  let text = head
  for (let depth = 1; depth <= 30; depth++) {
    const boundary = "b".repeat(depth)
    text += `Content-Type: multipart/mixed; boundary=${boundary}\r\n\r\n--${boundary}\r\n`
  }
  return of(`${text}\r\n`, `--${"b".repeat(40)}x\r\n`, size)
}

/** Messages of which each once took a second or more of CPU. */
const hostile = (): ReadonlyArray<string> => [
  of(`${head}X-Folded: a\r\n`, " b\r\n", 160 * 1024),
  of(`${head}X-Folded: a\r\n`, ` ${"b".repeat(120)}\r\n`, 230 * 1024),
  nested(),
  `From: ${"g:".repeat(100 * 1024)}\r\n\r\nx\r\n`,
  `${head}To: ${"a:b;".repeat(50 * 1024)}\r\n\r\nx\r\n`,
  of(head, `X: ${"y".repeat(70)}\r\n`, size),
  of(mixed, "--b\r\n", size),
  of(mixed, `--b\r\nContent-Type: text/x; ${"a*0=b;".repeat(300)}\r\n\r\nx\r\n`, size),
  of(
    mixed,
    `--b\r\nContent-Type: text/x; ${Array.from({ length: 200 }, (_, at) => `n${at}*=u''a;`).join("")}\r\n\r\nx\r\n`,
    size,
  ),
  of(mixed, `--b\r\nContent-Type: text/x; name="${"=?cp437?q?A?= =?utf-7?q?A?= ".repeat(70)}"\r\n\r\nx\r\n`, size),
  `${head}${`DKIM-Signature: d${" ".repeat(8_000)}x\r\n`.repeat(10)}\r\nx\r\n`,
  of(`${head}Content-Transfer-Encoding: quoted-printable\r\n\r\n`, "=41=\t", size),
  of(`${head}Content-Transfer-Encoding: quoted-printable\r\n\r\n`, " ", size),
  of(`${head}Content-Type: text/html\r\n\r\n`, "<b>", size),
  of(`${head}Content-Type: text/html\r\n\r\n`, "<", size),
  of(`${head}Content-Type: text/plain; format=flowed\r\n\r\n`, "a \r\n", size),
  of(`${head}${signature("").repeat(900)}\r\n`, " \t a\r\n", size),
  of(`${head}${Array.from({ length: 60 }, (_, at) => signature(`l=${at}; `)).join("")}\r\n`, "a b\r\n", size),
]

const harmless = (sizes: ReadonlyArray<number>): ReadonlyArray<string> =>
  sizes.map((bytes) => of(`${head}\r\n`, "A line of text of a length that people write.\r\n", bytes))

/** Sends commands one at a time. Returns the last reply. */
const session = async (port: number, localAddress: string) => {
  const socket = connect({ port, host: "127.0.0.1", localAddress })
  socket.on("error", () => {})
  let text = ""
  let waiting: ((reply: string) => void) | undefined
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    if (!/^\d{3} .*\r\n$/m.test(text)) return
    const reply = text
    text = ""
    waiting?.(reply)
  })
  const next = () => new Promise<string>((resolve) => (waiting = resolve))
  const command = (line: string) => {
    const reply = next()
    socket.write(Buffer.from(line, "latin1"))
    return reply
  }
  await next()
  await command("EHLO [127.0.0.1]\r\n")
  return {
    send: async (to: string, message: string) => {
      await command("MAIL FROM:<>\r\n")
      await command(`RCPT TO:<${to}>\r\n`)
      await command("DATA\r\n")
      return command(`${message}\r\n.\r\n`)
    },
    close: () => socket.destroy(),
  }
}

/** Sends the messages repeatedly, with a pause after each, until the process is killed. */
const sender = async (port: number, to: string, kind: string) => {
  const bombs = hostile()
  const messages = kind === "hostile" ? bombs : harmless(bombs.map(({ length }) => length))
  for (let one = await session(port, "127.0.0.1"), at = 0; ; at++) {
    const reply = await one.send(to, messages[at % messages.length]!)
    console.log(reply.slice(0, 3))
    if (at % messages.length === messages.length - 1) {
      one.close()
      one = await session(port, "127.0.0.1")
    }
    await sleep(50)
  }
}

/** Milliseconds of CPU that a message may cost more than a harmless one of its size. */
const atMost = { eventLoop: 50, process: 300 }
const tries = 3

interface Cost {
  readonly eventLoop: number
  readonly process: number
}

/** Milliseconds of CPU time that a process has used, and the thread of its event loop. */
const used = (pid: number): Cost => {
  const columns = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return {
    eventLoop: Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1_000_000,
    // In ticks of 10 ms; unlike the threads' own counters it includes threads that have ended.
    process: (Number(columns[11]) + Number(columns[12])) * 10,
  }
}

/** The rounds and seconds of each measurement, which take turns because the speed of the machine changes. */
const rounds = times(3)
const seconds = 7

/** Milliseconds. */
interface Waits {
  readonly mail: number
  readonly health: number
  readonly p99: number
  readonly healthP99: number
  readonly replies: ReadonlyArray<string>
}

/** Returns the median of each figure. */
const middle = (all: ReadonlyArray<Waits>): Waits => {
  const of = (figure: (one: Waits) => number) => percentile(all.map(figure), 0.5)
  return {
    mail: of(({ mail }) => mail),
    health: of(({ health }) => health),
    p99: of(({ p99 }) => p99),
    healthP99: of(({ healthP99 }) => healthP99),
    replies: all.flatMap(({ replies }) => replies),
  }
}

export const hostileMail = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start([], { SVC_MAILBOX_BYTES: String(2 ** 40) })
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    const other = await makeIdentity(service.base, owner.session)
    const honest = await session(service.smtpPort, "127.0.0.2")
    const letter = `From: a@[127.0.0.2]\r\nSubject: honest\r\n\r\n${"A line of text.\r\n".repeat(300)}`

    /** Returns the waits of the regular sender and the health check over some seconds. */
    const phase = async (): Promise<Waits> => {
      const until = performance.now() + seconds * 1000
      const [mail, health] = await Promise.all([
        waitsOf(async () => {
          const reply = await honest.send(`${other.handle}@mail.localhost`, letter)
          if (!reply.startsWith("250")) throw new Error(reply)
        }, until),
        waitsOf(async () => (await fetch(`${service.base}/api/healthz`)).arrayBuffer(), until),
      ])
      const worst = (all: ReadonlyArray<number>) => Math.max(...all)
      return {
        mail: worst(mail),
        health: worst(health),
        p99: percentile(mail, 0.99),
        healthP99: percentile(health, 0.99),
        replies: [],
      }
    }
    const beside = async (kind: "hostile" | "harmless"): Promise<Waits> => {
      const words = [import.meta.filename, "send", String(service.smtpPort), `${handle}@mail.localhost`, kind]
      const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] })
      const replies: Array<string> = []
      child.stdout.on("data", (chunk: Buffer) => replies.push(...chunk.toString().trim().split("\n")))
      await once(child.stdout, "data")
      const measured = await phase()
      child.kill()
      return { ...measured, replies }
    }

    const pid = service.child.pid!
    /** The least of several tries, since other work of the process only adds to a message's cost. */
    const costOf = async (message: string): Promise<Cost> => {
      const costs: Array<Cost> = []
      for (let attempt = 0; attempt < tries; attempt++) {
        const one = await session(service.smtpPort, "127.0.0.3")
        const before = used(pid)
        await one.send(`${handle}@mail.localhost`, message)
        const after = used(pid)
        one.close()
        costs.push({ eventLoop: after.eventLoop - before.eventLoop, process: after.process - before.process })
      }
      return {
        eventLoop: Math.min(...costs.map(({ eventLoop }) => eventLoop)),
        process: Math.min(...costs.map(({ process }) => process)),
      }
    }

    // Warms up the service.
    await waitsOf(() => honest.send(`${other.handle}@mail.localhost`, letter), performance.now() + 3_000)
    const measured: { alone: Array<Waits>; plain: Array<Waits>; bombs: Array<Waits> } = {
      alone: [],
      plain: [],
      bombs: [],
    }
    for (let round = 0; round < rounds; round++) {
      measured.alone.push(await phase())
      measured.plain.push(await beside("harmless"))
      measured.bombs.push(await beside("hostile"))
    }
    honest.close()
    const dearest = { eventLoop: 0, process: 0 }
    for (const message of hostile()) {
      const [cost, base] = [await costOf(message), await costOf(harmless([message.length])[0]!)]
      dearest.eventLoop = Math.max(dearest.eventLoop, cost.eventLoop - base.eventLoop)
      dearest.process = Math.max(dearest.process, cost.process - base.process)
    }
    const [alone, plain, bombs] = [middle(measured.alone), middle(measured.plain), middle(measured.bombs)]
    const repliesOf = ({ replies }: Waits) =>
      [...Map.groupBy(replies, (code) => code)].map(([code, all]) => `${code}×${all.length}`).join(" ")
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: owner.session })
    // Harmless mail of the same sizes costs something too.
    const more = {
      mail: bombs.mail - Math.max(alone.mail, plain.mail),
      health: bombs.health - Math.max(alone.health, plain.health),
    }
    return {
      id: "hostile-mail",
      ok:
        dearest.eventLoop <= atMost.eventLoop &&
        dearest.process <= atMost.process &&
        body.messages.length > 0 &&
        !bombs.replies.includes("451"),
      what: `a regular sender and the health check beside mail crafted to parse slowly, ${rounds} times ${seconds} s each in turn; harmless mail is of the same sizes`,
      goals: [
        { what: "ms that a regular sender waits longer", value: round(more.mail), atMost: 50 },
        { what: "ms that the health check waits longer", value: round(more.health), atMost: 50 },
      ],
      figures: {
        "CPU ms more of a message in the event loop": round(dearest.eventLoop),
        "in the process": round(dearest.process),
        "mail worst ms, alone": round(alone.mail),
        "harmless beside": round(plain.mail),
        "hostile beside": round(bombs.mail),
        "mail p99 ms": `${round(alone.p99)} / ${round(plain.p99)} / ${round(bombs.p99)}`,
        "health worst ms, alone": round(alone.health),
        harmless: round(plain.health),
        hostile: round(bombs.health),
        "health p99 ms": `${round(alone.healthP99)} / ${round(plain.healthP99)} / ${round(bombs.healthP99)}`,
        "replies to harmless mail": repliesOf(plain),
        "replies to hostile mail": repliesOf(bombs),
      },
    }
  } finally {
    await deployment.stop()
  }
}

const [verb, port, to, kind] = process.argv.slice(2)
if (verb === "send" && port !== undefined && to !== undefined && kind !== undefined)
  await sender(Number(port), to, kind)
