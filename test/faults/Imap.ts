/**
 * Random operations of IMAP sessions on the same folders over two gateways, while one gateway is killed, mail arrives
 * and the API flags and removes messages. At the end, all views must agree.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { deploy } from "../harness/Deployment.ts"
import { ImapClient } from "../harness/Imap.ts"
import { round, type Row } from "../harness/Report.ts"
import { Views } from "../mail/imap/Views.ts"
import { inStore } from "./Store.ts"

/** Total number of operations of all sessions (`FAULTS_OPERATIONS`). The default takes a minute; 50,000 take five. */
const operations = Number(process.env["FAULTS_OPERATIONS"] ?? 10_000)
const sessions = 20

const folders = ["INBOX", "Trash", "work"]
const flags = ["\\Seen", "\\Flagged", "\\Answered", "\\Deleted", "work", "$Forwarded"]

/** A seeded random generator. */
const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}

interface Credentials {
  readonly username: string
  readonly password: string
}

class Session {
  readonly next: () => number
  view = new Views()
  folder = "INBOX"
  /** Invalid responses of the server, such as an unknown message number. */
  readonly wrong: Array<string> = []
  /** Messages that APPEND confirmed. */
  readonly stored: Array<string> = []
  /** Longest response time in milliseconds. */
  longest = 0
  readonly #number: number
  #client: ImapClient | undefined
  #count = 0
  #port: () => number
  readonly #credentials: Credentials

  constructor(number: number, port: () => number, credentials: Credentials) {
    this.next = random(1_000 + number)
    this.#number = number
    this.#port = port
    this.#credentials = credentials
  }

  async open(): Promise<void> {
    this.#client?.close()
    const { username, password } = this.#credentials
    this.#client = await ImapClient.login(this.#port(), username, password)
    if (this.#number % 3 === 0) await this.#client.say("ENABLE CONDSTORE")
    await this.select(this.folder)
  }

  async select(folder: string): Promise<void> {
    this.folder = folder
    this.view = new Views()
    await this.say(`SELECT ${folder}`)
  }

  /** Sends a command and returns the tagged response; fails if the gateway has died. */
  async say(command: string, ...literals: ReadonlyArray<string>): Promise<string> {
    const start = performance.now()
    const { tagged, untagged } = await this.#client!.say(command, ...literals).catch((error: unknown) => {
      throw new Error(`${command} at gateway ${this.#number % 2}: ${String(error)}`)
    })
    this.longest = Math.max(this.longest, performance.now() - start)
    if (tagged === "CLOSED") throw new Error("closed")
    const byNumber = /^(FETCH|STORE|SEARCH) /.test(command)
    try {
      for (const line of untagged) this.view.hear(line, byNumber)
    } catch (error) {
      this.wrong.push(`${command}: ${error instanceof Error ? error.message : String(error)}`)
    }
    if (!/^(OK|NO \[(EXPUNGEISSUED|UNAVAILABLE)\]|BAD There is no message)/.test(tagged)) {
      this.wrong.push(`${command}: ${tagged}`)
    }
    return tagged
  }

  async turn(): Promise<void> {
    const { next, view } = this
    const pick = next()
    const count = view.uids.length
    const one = () => 1 + Math.floor(next() * count)
    const some = () => {
      const first = one()
      return `${first}:${Math.min(count, first + Math.floor(next() * 5))}`
    }
    const flag = flags[Math.floor(next() * flags.length)]!
    const folder = folders[Math.floor(next() * folders.length)]!
    if (pick < 0.25 || count === 0) {
      const subject = `s${this.#number}n${this.#count++}`
      const text = `Subject: ${subject}\r\n\r\nbody\r\n`
      const reply = await this.say(`APPEND ${folder} (${flag}) {${text.length}}`, text)
      if (reply.startsWith("OK")) this.stored.push(subject)
    } else if (pick < 0.5) await this.say(`STORE ${some()} ${next() < 0.5 ? "+" : "-"}FLAGS (${flag})`)
    else if (pick < 0.62) await this.say(`FETCH ${some()} (UID FLAGS)`)
    else if (pick < 0.7) await this.say("EXPUNGE")
    else if (pick < 0.78) await this.say(`COPY ${some()} ${folder}`)
    else if (pick < 0.86) await this.say(`MOVE ${some()} ${folder}`)
    else if (pick < 0.92) await this.say("NOOP")
    else if (pick < 0.96) await this.say("UID FETCH 1:* (FLAGS)")
    else await this.select(folder)
  }

  /** Compares the session's view with a fresh query, and detects state that never existed. */
  async agrees(): Promise<boolean> {
    await this.say("NOOP")
    await this.say("FETCH 1:* (UID FLAGS)")
    const { username, password } = this.#credentials
    const fresh = await ImapClient.login(this.#port(), username, password)
    const now = new Views()
    for (const line of (await fresh.say(`EXAMINE ${this.folder}`)).untagged) now.hear(line, false)
    for (const line of (await fresh.say("FETCH 1:* (UID FLAGS)")).untagged) now.hear(line, false)
    fresh.close()
    const stateOf = ({ uids, flags }: Views) => JSON.stringify(uids.map((uid) => [uid, flags.get(uid)]))
    return stateOf(this.view) === stateOf(now)
  }

  close(): void {
    this.#client?.close()
  }
}

interface Listed {
  readonly id: string
  readonly subject: string
  readonly seen: boolean
  readonly flagged: boolean
  readonly labels: ReadonlyArray<string>
}

/** Returns all messages of the API's list. */
const listed = async (base: string, handle: string, token: string): Promise<ReadonlyArray<Listed>> => {
  const all: Array<Listed> = []
  for (let cursor: string | null = ""; cursor !== null;) {
    const page: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await call(base, "GET", `/api/identities/${handle}/messages?limit=100${page}`, { token })
    if (status !== 200) throw new Error(`the list of messages: ${status}`)
    all.push(...body.messages)
    cursor = body.next_cursor ?? null
  }
  return all
}

/** Normalizes the flags of a message. `\\Deleted` belongs to a folder, and the list does not contain `\\Answered`. */
const spelled = (id: string, flags: ReadonlyArray<string>) =>
  `${id} ${flags
    .map((flag) => flag.toLowerCase())
    .filter((flag) => !["\\deleted", "\\answered"].includes(flag))
    .sort()
    .join(" ")}`

const byApi = ({ id, seen, flagged, labels }: Listed) =>
  spelled(id, [...(seen ? ["\\Seen"] : []), ...(flagged ? ["\\Flagged"] : []), ...labels])

/** Returns all messages of all folders without duplicates. */
const byImap = async (port: number, { username, password }: Credentials): Promise<ReadonlySet<string>> => {
  const client = await ImapClient.login(port, username, password)
  const all = new Set<string>()
  for (const folder of folders) {
    await client.say(`EXAMINE ${folder}`)
    for (const line of (await client.say("FETCH 1:* (EMAILID FLAGS)")).untagged) {
      const [id, flags] = [/EMAILID \(([^)]*)\)/.exec(line)?.[1], /FLAGS \(([^)]*)\)/.exec(line)?.[1]]
      if (/^\* \d+ FETCH /.test(line))
        all.add(
          spelled(
            id ?? "",
            (flags ?? "").split(" ").filter((flag) => flag !== "" && flag !== "\\Recent"),
          ),
        )
    }
  }
  client.close()
  return all
}

/**
 * Changes flags and removes messages over REST at random until `ends`; returns the number of changes and the errors.
 */
const apiHand = async (base: string, handle: string, token: string, ends: () => boolean) => {
  const next = random(7)
  const wrong: Array<string> = []
  let changed = 0
  while (!ends()) {
    const { body } = await call(base, "GET", `/api/identities/${handle}/messages?limit=20`, { token })
    const all: ReadonlyArray<Listed> = body.messages ?? []
    const one = all[Math.floor(next() * all.length)]
    if (one !== undefined) {
      const at = `/api/identities/${handle}/messages/${one.id}`
      const pick = next()
      const { status } =
        pick < 0.15
          ? await call(base, "DELETE", at, { token })
          : await call(base, "PATCH", at, {
              token,
              body: pick < 0.5 ? { seen: next() < 0.5 } : pick < 0.8 ? { flagged: next() < 0.5 } : { labels: ["work"] },
            })
      // Another client may have removed the message.
      if (![200, 204, 404].includes(status)) wrong.push(`${pick < 0.15 ? "DELETE" : "PATCH"}: ${status}`)
      if (status < 300) changed++
    }
    await sleep(20)
  }
  return { changed, wrong }
}

/** Sends messages to the Mailbox until `ends`; returns how many were accepted. */
const smtpHand = async (port: number, to: string, ends: () => boolean) => {
  let sent = 0
  while (!ends()) {
    await send(port, { from: "grace@example.org", to, subject: `letter${sent}`, text: "text" })
    sent++
    await sleep(30)
  }
  return sent
}

/** Runs twenty sessions on one Mailbox over two gateways, one of which is killed half way and restarted. */
export const imapMany = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const api = await deployment.start(["api", "actors"])
    const settings = { SVC_IMAP_CLIENT_SESSIONS: "1000" }
    const gateways = [await deployment.start(["mail"], settings), await deployment.start(["mail"], settings)]
    const owner = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, owner.session)
    const first = await ImapClient.login(gateways[0]!.imapPort, secrets.imap.username, secrets.imap.password)
    await first.say("CREATE work")
    first.close()
    const all = Array.from(
      { length: sessions },
      (_, n) => new Session(n, () => gateways[n % 2]!.imapPort, secrets.imap),
    )
    for (const one of all) await one.open()
    let done = 0
    let reopened = 0
    const start = performance.now()
    const ends = () => done >= operations
    const others = Promise.all([
      apiHand(api.base, handle, owner.session, ends),
      // Uses the gateway that is not killed.
      smtpHand(gateways[0]!.smtpPort, `${handle}@mail.localhost`, ends),
    ])
    const work = Promise.all(
      all.map(async (one) => {
        while (done < operations) {
          done++
          try {
            await one.turn()
          } catch (error) {
            if (!(error instanceof Error) || error.message !== "closed") one.wrong.push(String(error))
            // Its gateway died, so its last command may have taken effect. It reconnects when the gateway is back.
            for (let tries = 0; ; tries++) {
              try {
                await one.open()
                reopened++
                break
              } catch (error) {
                if (tries > 1_500) throw error
                await sleep(200)
              }
            }
          }
        }
      }),
    )
    // A failure before the result is awaited fails the row instead of ending the process.
    work.catch(() => {})
    others.catch(() => {})
    while (done < operations / 2) await sleep(50)
    const victim = gateways[1]!
    victim.signal("SIGKILL")
    await victim.exited
    gateways[1] = await deployment.start(["mail"], settings)
    await work
    const [overApi, letters] = await others
    const seconds = (performance.now() - start) / 1000
    // Commands in flight of the killed gateway have ended by now, and nothing changes any more.
    await sleep(1_000)
    let astray = 0
    for (const one of all) if (!(await one.agrees())) astray++
    const wrong = [...all.flatMap(({ wrong }) => wrong), ...overApi.wrong]
    const stateOf = await byImap(gateways[0]!.imapPort, secrets.imap)
    const listedByApi = new Set((await listed(api.base, handle, owner.session)).map(byApi))
    const differs = [
      ...[...stateOf].filter((one) => !listedByApi.has(one)),
      ...[...listedByApi].filter((one) => !stateOf.has(one)),
    ]
    for (const one of all) one.close()
    const [store] = await inStore<{ placeless: number; dangling: number; gaps: number; doubled: number }>(
      deployment,
      `select (select count(*) from message m where not exists (select from placed p where p.message_id = m.id))::int as placeless,
              (select count(*) from placed p where not exists (select from message m where m.id = p.message_id))::int as dangling,
              (select coalesce(sum(f.uid_next - 1 - (select count(*) from placed p where p.folder_id = f.id)
                 - (select count(*) from vanished v where v.folder_id = f.id)), 0) from folder f)::int as gaps,
              (select count(*) - count(distinct summary ->> 'subject') from message)::int as doubled`,
    )
    return {
      id: "imap-many",
      ok:
        astray === 0 &&
        wrong.length === 0 &&
        store!.placeless + store!.dangling + store!.gaps === 0 &&
        differs.length === 0 &&
        listedByApi.size > 0 &&
        letters > 0 &&
        overApi.changed > 0,
      what: `${operations} random operations of ${sessions} sessions on three folders of one Mailbox over two gateways, one killed halfway, while mail arrives and the API flags and removes messages`,
      figures: {
        seconds: round(seconds),
        "sessions reconnected": reopened,
        "longest wait ms, other gateway": round(
          Math.max(...all.filter((_, n) => n % 2 === 0).map(({ longest }) => longest)),
        ),
        "views that are not the store's": astray,
        "invalid responses": wrong.length,
        "messages in no folder": store!.placeless,
        "folder entries without a message": store!.dangling,
        "skipped UIDs": store!.gaps,
        "appended twice": store!.doubled,
        "letters by SMTP": letters,
        "changes over the API": overApi.changed,
        "remaining messages": listedByApi.size,
        "messages that IMAP and the API tell differently": differs.length,
      },
      details: [...wrong.slice(0, 5), ...differs.slice(0, 5)],
    }
  } finally {
    await deployment.stop()
  }
}
