/** Restarts every process in turn, as in an upgrade, under calls and mail. */
import { setTimeout as sleep } from "node:timers/promises"
import { call, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { type Row } from "../harness/Report.ts"
import { manyIdentities } from "./Cluster.ts"
import { type Fleet, fleet } from "./Fleet.ts"
import { figures, outcome, timed } from "./Load.ts"
import { missing, register } from "./Writes.ts"

/** Writes and reads every Identity while `goesOn` returns true. */
const calling = (gateways: Fleet, token: string, handles: ReadonlyArray<string>, isRunning: () => boolean) => {
  const seen = outcome()
  const written: Array<string> = []
  const ended = Promise.all(
    handles.map(async (handle) => {
      while (isRunning()) {
        const { base } = await gateways.next()
        const id = await register(seen, base, token, handle)
        if (id !== undefined) written.push(id)
        await timed(seen, 200, (await gateways.next()).base, "GET", `/api/identities/${handle}`, { token })
        await sleep(250)
      }
    }),
  )
  return { seen, written, ended }
}

/** Sends messages to every Identity. If a server does not respond or defers, the sender uses the next one. */
const mailing = (servers: Fleet, handles: ReadonlyArray<string>, isRunning: () => boolean) => {
  const accepted: Array<string> = []
  const untaken: Array<string> = []
  /** Number of messages that were sent again without a 250; the first attempt may have been accepted too. */
  let repeated = 0
  const ended = (async () => {
    for (let at = 0; isRunning(); at++) {
      const subject = `rolling ${at}`
      const message = {
        from: "a@example.org",
        to: `${handles[at % handles.length]}@mail.localhost`,
        subject,
        text: "t",
      }
      const tried: Array<string> = []
      for (let server = 0; server < 2; server++) {
        const reply = await send((await servers.next()).smtpPort, message).then(
          () => "250",
          (error: { responseCode?: number; code?: string }) => String(error.responseCode ?? error.code),
        )
        tried.push(reply)
        if (reply === "250") break
        repeated++
      }
      if (tried.at(-1) === "250") accepted.push(subject)
      else untaken.push(tried.join(" "))
      await sleep(100)
    }
  })()
  return { accepted, untaken, repeated: () => repeated, ended }
}

export const rolling = async (): Promise<Row> => {
  const deployment = await deploy()
  let isRunning = true
  const fleets: Array<Fleet> = []
  try {
    for (const role of ["actors", "mail", "api"]) fleets.push(await fleet(deployment, role, 2))
    const [actors, servers, gateways] = fleets as [Fleet, Fleet, Fleet]
    const { base } = await gateways.next()
    const { session } = await signUp(base)
    const handles = await manyIdentities(base, session, 12)
    const calls = calling(gateways, session, handles, () => isRunning)
    const mails = mailing(servers, handles, () => isRunning)
    await sleep(2000)
    // The order of docs/upgrade.md.
    for (const one of [actors, servers, gateways]) await one.restart()
    await sleep(2000)
    isRunning = false
    await Promise.all([calls.ended, mails.ended])
    const last = (await gateways.next()).base
    const { lost, twice } = await missing(last, session, handles, calls.written)
    const listed: Array<string> = []
    for (const handle of handles) {
      const { body } = await call(last, "GET", `/api/identities/${handle}/messages?limit=200`, { token: session })
      listed.push(...body.messages.map(({ subject }: { subject: string }) => subject))
    }
    const lostMail = mails.accepted.filter((subject) => !listed.includes(subject)).length
    const doubled = listed.length - new Set(listed).size
    const wrong = [...calls.seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "rolling",
      ok:
        wrong.length === 0 &&
        lost === 0 &&
        twice === 0 &&
        mails.untaken.length === 0 &&
        lostMail === 0 &&
        doubled <= mails.repeated(),
      what: "two processes of each of actors, mail and api, every one restarted in turn under calls and mail of 12 Identities",
      figures: {
        ...figures(calls.seen),
        "writes lost": lost,
        "writes duplicated": twice,
        "mail accepted": mails.accepted.length,
        "mail lost": lostMail,
        "mail sent again": mails.repeated(),
        "mail duplicated": doubled,
        "mail accepted by no server": mails.untaken.join(", ") || "none",
      },
      // A machine that is too busy for the deadline of a request returns it regardless of restarts.
      goals: [{ what: "responses that ask to retry", value: calls.seen.errors.get("503 unavailable") ?? 0, atMost: 0 }],
    }
  } finally {
    isRunning = false
    for (const one of fleets) one.end()
    await deployment.stop()
  }
}
