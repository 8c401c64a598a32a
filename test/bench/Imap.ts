/**
 * The IMAP row: columns, messages and a search of a Mailbox, compared with Dovecot on a Maildir with the same messages,
 * and the cost of an idle session.
 */
import { readFile } from "node:fs/promises"
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Goal, type Row } from "../harness/Report.ts"
import { dovecot } from "./Dovecot.ts"

/** Number of messages in the Mailbox, and of idle sessions. */
const messages = 3_000
const idle = 2_000
const times = 7

interface Reading {
  readonly say: (command: string) => Promise<number>
  readonly append: (messages: ReadonlyArray<string>) => Promise<void>
  readonly close: () => void
}

/** A client that only detects the end of a response, so that it costs less than the server. */
const client = async (port: number, user: string, password: string): Promise<Reading> => {
  const socket: Socket = connect(port, "127.0.0.1")
  let tail = ""
  let bytes = 0
  let wanted = ""
  let waiting: ((bytes: number) => void) | undefined
  let failed: ((error: Error) => void) | undefined
  socket.on("error", (error) => failed?.(error))
  socket.on("close", () => failed?.(new Error(`the server at port ${port} closed the connection: ${tail.slice(-200)}`)))
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    tail = (tail + chunk.subarray(-2_000).toString("latin1")).slice(-4_000)
    const at = tail.lastIndexOf(wanted)
    if (wanted === "" || at < 0 || !tail.endsWith("\r\n")) return
    const status = tail.slice(at + wanted.length)
    wanted = ""
    if (status.startsWith("OK")) waiting?.(bytes)
    else failed?.(new Error(status))
  })
  let tags = 0
  const answered = (tag: string) =>
    new Promise<number>((resolve, reject) => {
      bytes = 0
      tail = ""
      wanted = `${tag} `
      waiting = resolve
      failed = reject
    })
  const sendCommand = (command: string) => {
    const tag = `x${tags++}`
    const done = answered(tag)
    socket.write(`${tag} ${command}\r\n`)
    return done
  }
  await sendCommand(`LOGIN "${user}" ${password}`)
  return {
    say: sendCommand,
    append: async (all) => {
      for (let at = 0; at < all.length; at += 50) {
        const some = all.slice(at, at + 50)
        const done = answered(`e${at}`)
        for (const text of some) socket.write(`a APPEND INBOX {${Buffer.byteLength(text)}+}\r\n${text}\r\n`)
        socket.write(`e${at} NOOP\r\n`)
        await done
      }
    },
    close: () => socket.destroy(),
  }
}

const words =
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they".split(" ")

/** Returns a message of 4 kB; two of the first ones contain the rare word. */
const letter = (n: number): string => {
  let text = ""
  for (let at = 0; text.length < 3_600; at++) {
    text += `${words[(n * 7 + at * 13) % words.length]}${(n * at) % 97} ${at % 12 === 11 ? "\r\n" : ""}`
  }
  const rare = n === 2 || n === 3 ? "xylophon\r\n" : ""
  return `From: Bench <b${n % 50}@bench.example>\r\nTo: Reader <x@bench.example>\r\nSubject: Letter ${n}\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\nMessage-ID: <${n}@bench.example>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n${rare}`
}

const resident = async (pid: number | undefined): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0)
}

const cases = [
  ["FETCH FLAGS", "FETCH 1:* (FLAGS)", 3],
  ["FETCH ENVELOPE", "FETCH 1:* (ENVELOPE)", 2],
  ["FETCH BODY[]", "FETCH 1:* (BODY.PEEK[])", 3],
  ["SEARCH BODY", "SEARCH BODY xylophon", 0.1],
] as const

export const imap = async (): Promise<Row> => {
  const deployment = await deploy()
  const reference = await dovecot()
  try {
    const service = await deployment.start([], {
      SVC_IMAP_CLIENT_SESSIONS: "5000",
      SVC_IMAP_MAILBOX_SESSIONS: "5000",
      SVC_MAILBOX_BYTES: String(2 ** 40),
    })
    const { session } = await signUp(service.base)
    const { secrets } = await makeIdentity(service.base, session)
    const letters = Array.from({ length: messages }, (_, n) => letter(n))
    const { username, password } = secrets.imap
    const open = () => client(service.imapPort, username, password)
    const ours = await open()
    await ours.append(letters)
    const theirs = reference && (await client(reference.port, reference.username, reference.password))
    await theirs?.append(letters)
    const goals: Array<Goal> = []
    const figures: Record<string, string | number> = {}
    for (const one of [ours, theirs]) await one?.say("SELECT INBOX")
    const unreliable: Array<string> = []
    for (const [name, command, atMost] of cases) {
      const took = { ours: [] as Array<number>, theirs: [] as Array<number> }
      for (let n = 0; n < times; n++) {
        for (const [who, one] of [
          ["ours", ours],
          ["theirs", theirs],
        ] as const) {
          if (one === undefined) continue
          const start = performance.now()
          await one.say(command)
          // Both servers cache what they compute at the first access.
          if (n > 1) took[who].push(performance.now() - start)
        }
      }
      const [mine, other] = [took.ours, took.theirs].map((all) => percentile(all, 0.5))
      figures[`${name} ms`] = round(mine!)
      if (theirs === undefined) continue
      figures[`${name} ms, Dovecot`] = round(other!)
      goals.push({ what: `${name} to Dovecot's`, value: round(mine! / other!, 2), atMost })
      const spread = Math.max(...took.theirs) / Math.min(...took.theirs)
      if (spread > 1.5) unreliable.push(`${name}: Dovecot's own times lie ${round(spread, 1)}-fold apart`)
    }
    if (theirs === undefined) unreliable.push("Dovecot is not installed, so the row has no reference")
    theirs?.close()
    ours.close()

    await sleep(2_000)
    const before = await resident(service.child.pid)
    const sessions: Array<Reading> = []
    for (let at = 0; at < idle; at += 20) {
      const some = await Promise.all(Array.from({ length: 20 }, open))
      for (const one of some) {
        await one.say("SELECT Sent")
        void one.say("IDLE").catch(() => {})
      }
      sessions.push(...some)
    }
    await sleep(5_000)
    const after = await resident(service.child.pid)
    for (const one of sessions) one.close()
    goals.push({ what: "kB of an idle session", value: round((after - before) / idle), atMost: 15 })
    return {
      id: "imap",
      ok: true,
      what: `a Mailbox of ${messages.toLocaleString("en")} messages of 4 kB, read by one session, compared with Dovecot on a Maildir; and ${idle.toLocaleString("en")} idle sessions`,
      goals,
      figures,
      unreliable,
    }
  } finally {
    reference?.stop()
    await deployment.stop()
  }
}
