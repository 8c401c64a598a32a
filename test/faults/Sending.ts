/** Outgoing mail faults: crashing relays and processes, the sending switch, and malicious bounces. */
import { setTimeout as sleep } from "node:timers/promises"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { converse } from "../harness/Mail.ts"
import { percentile, type Row } from "../harness/Report.ts"
import { freePort } from "../harness/Ports.ts"
import { authenticate } from "mailauth"
import { startCrashingRelay } from "./CrashingRelay.ts"
import { startPostfix } from "./Postfix.ts"
import { inStore } from "./Store.ts"
import { has } from "../harness/Programs.ts"

const to = "grace@example.org"

/** Creates an Identity that may write to Grace. */
export const writer = async (service: Process) => {
  const owner = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, owner.session)
  const token = owner.session
  await call(service.base, "POST", `/api/identities/${handle}/allowed-recipients`, { token, body: { address: to } })
  return { handle, token }
}

type Writer = Awaited<ReturnType<typeof writer>>

export const send = async (base: string, { handle, token }: Writer, subject: string) =>
  (
    await call(base, "POST", `/api/identities/${handle}/messages/send`, {
      token,
      body: { to: [to], subject, text: "x" },
    })
  ).status === 202

export const settings = (port: number) => ({
  SVC_SMTP_RELAY_URL: `smtp://127.0.0.1:${port}`,
  SVC_LIMIT_MAIL_HOURLY: "1000000",
})

const status = (...blocks: ReadonlyArray<string>) =>
  `From: MAILER-DAEMON@mx.example.org\r\nSubject: Undelivered\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\n${blocks.join("\r\n\r\n")}\r\n\r\n--b--\r\n`

const failed = (address: string) => `Final-Recipient: rfc822; ${address}\r\nAction: failed\r\nStatus: 5.1.1`

/** Bounces that are expensive to parse, concern other messages, or try to inject recipients. */
const hostile = (bounce: string): ReadonlyArray<readonly [string, string]> => [
  ["of strangers", status(...Array.from({ length: 20_000 }, (_, at) => failed(`s${at}@evil.example`)))],
  ["without an end", status(`Final-Recipient: rfc822; ${"a".repeat(2_000_000)}`)],
  ["in 5,000 folds", status(`Diagnostic-Code: smtp;${"\r\n 550".repeat(5_000)}`)],
  [
    "nested",
    `Content-Type: multipart/report; boundary=b\r\n\r\n${"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n".repeat(20_000)}`,
  ],
  ["of dashes", `Subject: failure notice\r\n\r\npermanent error\r\n${"-".repeat(900)}\r\n`.repeat(500)],
  ["of addresses", `Subject: failure notice\r\n\r\npermanent ${"a@b.c ".repeat(100_000)}\r\n`],
  [
    "that is a letter",
    `From: eve@evil.example\r\nReply-To: eve@evil.example\r\nSubject: hello\r\n\r\nWrite to me.\r\n`,
  ],
  ["that answers us", status(failed(bounce))],
  ["of headers", `${"X: y\r\n".repeat(3_000)}\r\nfailure notice\r\n`],
]

export const hostileBounce = async (): Promise<Row> => {
  const relay = await startCrashingRelay(() => "never")
  const deployment = await deploy()
  try {
    const service = await deployment.start([], settings(relay.port))
    const ada = await writer(service)
    const other = await writer(service)
    await send(service.base, ada, "first")
    const copies = () => relay.copies.filter(({ subject }) => subject === "first")
    await until("the message", () => copies().length > 0)
    const rows = await inStore<{ id: string }>(deployment, "select id::text as id from outbox")
    // The bounce address as every server sees it: in the relay's MAIL command.
    const bounce = relay.senders.at(-1)!
    const deliverBounce = (address: string, letter: string, sender = "") =>
      converse(service.smtpPort, [
        "EHLO mx.example.org\r\n",
        `MAIL FROM:<${sender}>\r\n`,
        `RCPT TO:<${address}>\r\n`,
        "DATA\r\n",
        `${letter.replace(/^\./gm, "..")}\r\n.\r\n`,
        "QUIT\r\n",
      ]).catch(() => [])
    const state = async () =>
      JSON.stringify(
        await inStore(
          deployment,
          `select (select count(*)::int from event where type like 'email.%' and type not in ('email.sent', 'email.bounced')) as events,
                  (select count(*)::int from message) as messages,
                  (select json_agg(a.address order by a.address) from allowed_recipient a) as allowed,
                  (select count(*)::int from outbox) as outbox`,
        ),
      )
    const before = await state()
    const sentBefore = relay.copies.length
    const waits: Array<number> = []
    let isOver = false
    const honest = async () => {
      while (!isOver) {
        const start = performance.now()
        await call(service.base, "GET", `/api/identities/${other.handle}`, { token: other.token })
        waits.push(performance.now() - start)
        await sleep(5)
      }
    }
    const watching = honest()
    const letters = hostile(bounce)
    let guessed = 0
    for (const [, letter] of letters) await deliverBounce(bounce, letter)
    // Guesses of other addresses, and an invalid sender.
    for (let at = 0; at < 40; at++) {
      const other = bounce.replace(
        /\+.{5}/,
        `+${Math.random()
          .toString(36)
          .slice(2, 7)
          .replace(/[^a-z2-7]/g, "a")}`,
      )
      if (other !== bounce && (await deliverBounce(other, status(failed(to))))[3]?.startsWith("250") === true) guessed++
    }
    const asPerson = (await deliverBounce(bounce, status(failed(to)), "eve@evil.example"))[3] ?? ""
    isOver = true
    await watching
    const unchanged = (await state()) === before
    await deliverBounce(bounce, status(failed(to)))
    const [{ n } = { n: 0 }] = await inStore<{ n: number }>(
      deployment,
      // Whoever knows the address may report that this message did not arrive. Only that is accepted, and only once.
      `select count(*)::int as n from event where type = 'email.bounced' and data ->> 'recipient' = '${to}'`,
    )
    const [{ others } = { others: 0 }] = await inStore<{ others: number }>(
      deployment,
      `select count(*)::int as others from event where type = 'email.bounced' and data ->> 'recipient' <> '${to}'`,
    )
    return {
      id: "hostile-bounce",
      ok:
        unchanged &&
        guessed === 0 &&
        asPerson.startsWith("550") &&
        n === 1 &&
        rows.length === 1 &&
        relay.copies.length === sentBefore,
      what: `${letters.length} kinds of hostile bounces to an existing address, 40 guessed addresses, a sender without a mail server; then a genuine bounce`,
      figures: {
        "changed anything": unchanged ? 0 : 1,
        "guesses accepted": guessed,
        "bounces sent to people": asPerson.slice(0, 9),
        "Events about this message": n,
        "Events about others": others,
        "replies sent": relay.copies.length - sentBefore,
        "others' GET p99 ms": Math.round(percentile(waits, 0.99)),
      },
    }
  } finally {
    relay.stop()
    await deployment.stop()
  }
}

/** Tests the whole round with a real mail server: one message arrives as it was signed, another bounces. */
export const postfix = async (): Promise<Row> => {
  const what = "a message through Debian's Postfix arrives signed, and one to an unknown recipient bounces"
  if (!has("postfix")) return { id: "postfix", ok: true, what, figures: { skipped: "no Postfix, or not root" } }
  const deployment = await deploy()
  const smtpPort = await freePort()
  const server = await startPostfix(() => smtpPort)
  try {
    const service = await deployment.start([], { ...settings(server.port), SVC_SMTP_PORT: String(smtpPort) })
    const ada = await writer(service)
    const allow = { token: ada.token, body: { address: "nobody@example.org" } }
    await call(service.base, "POST", `/api/identities/${ada.handle}/allowed-recipients`, allow)
    await send(service.base, ada, "arrives")
    const body = { to: ["nobody@example.org"], subject: "comes back", text: "x" }
    await call(service.base, "POST", `/api/identities/${ada.handle}/messages/send`, { token: ada.token, body })
    await until("the letter", () => server.delivered().includes("Subject: arrives"), 60).catch(() => {})
    const events = () =>
      inStore<{ data: { recipient: string; kind: string; status: string } }>(
        deployment,
        "select data from event where type = 'email.bounced'",
      )
    await until("the bounce", async () => (await events()).length > 0, 60).catch(() => {})
    const [bounce] = await events()
    const raw = server.delivered()
    // Removes the header fields that the mailbox and Postfix added.
    const letter = raw
      .slice(raw.indexOf("DKIM-Signature:"))
      .replace(/\r?\n/g, "\r\n")
      .replace(/(?:\r\n)+$/, "\r\n")
    const keys = await inStore<{ name: string; record: string }>(
      deployment,
      `select selector || '._domainkey.' || domain as name,
              'v=DKIM1; k=' || split_part(algorithm, '-', 1) || '; p=' || public_key as record from dkim_key`,
    )
    const { dkim } = await authenticate(Buffer.from(letter, "latin1"), {
      ip: "192.0.2.1",
      helo: "mx",
      sender: "",
      disableBimi: true,
      resolver: async (name: string) => {
        const key = keys.find((one) => one.name === name)
        if (key !== undefined) return [[key.record]]
        throw Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" })
      },
    })
    const signatures = dkim.results.map((one) => one.status.result)
    return {
      id: "postfix",
      ok:
        signatures.join() === "pass,pass" &&
        bounce?.data.recipient === "nobody@example.org" &&
        bounce.data.kind === "hard",
      what,
      figures: {
        signatures: signatures.join(", ") || "none",
        bounced: bounce?.data.recipient ?? "nobody",
        status: bounce?.data.status ?? "none",
      },
    }
  } finally {
    server.stop()
    await deployment.stop()
  }
}
