/** Programs that send mail to the service: with TLS, pipelining, 8BITMIME and non-ASCII addresses. */
import { execFile, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { createTransport } from "nodemailer"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startExim } from "../faults/Exim.ts"
import { startOpenSmtpd } from "../faults/OpenSmtpd.ts"
import { startPostfix } from "../faults/Postfix.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

const run = promisify(execFile)
const python = "/usr/bin/python3"

const directory = mkdtempSync(path.join(os.tmpdir(), "svc-senders-"))

let service: OwnService
let token: string
let handle: string
let to: string
beforeAll(async () => {
  const { cert, key } = selfSigned(["mail.localhost"], new Date())
  const files = { cert: path.join(directory, "cert.pem"), key: path.join(directory, "key.pem") }
  writeFileSync(files.key, key)
  writeFileSync(files.cert, cert)
  service = await startService({ env: { SVC_SMTP_TLS_CERT: files.cert, SVC_SMTP_TLS_KEY: files.key } })
  token = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, token)).handle
  to = `${handle}@mail.localhost`
})
afterAll(async () => {
  await service.stop()
  rmSync(directory, { recursive: true })
})

const words = "Grüße aus Köln — 你好"

/** Unencoded UTF-8 in 8 bits. */
const letter = (subject: string, from = "grace@example.org") =>
  `From: Grace <${from}>\r\nTo: ${to}\r\nSubject: ${subject} ${words}\r\nMIME-Version: 1.0\r\n` +
  `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${words}\r\n.leading dot\r\n`

const fileOf = (subject: string, text = letter(subject)) => {
  const file = path.join(directory, subject)
  writeFileSync(file, text)
  return file
}

const get = (path: string) => call(service.base, "GET", `/api/identities/${handle}${path}`, { token })

/** Waits for the message whose subject starts like this, and returns it with its bytes. */
const received = async (subject: string, seconds = 30) => {
  const [found] = await eventually(
    async () =>
      ((await get("/messages")).body.messages as ReadonlyArray<any>).filter((one) => one.subject.startsWith(subject)),
    (messages) => messages.length === 1,
    seconds,
  )
  const { body } = await get(`/messages/${found.id}`)
  const raw = await fetch(`${service.base}/api/identities/${handle}/messages/${found.id}/raw`, {
    headers: { authorization: `Bearer ${token}` },
  })
  return { ...body, raw: Buffer.from(await raw.arrayBuffer()).toString("utf8") }
}

const expectWhole = (message: any, subject: string) => {
  expect(message.subject).toBe(`${subject} ${words}`)
  expect(message.text.trimEnd()).toBe(`${words}\n.leading dot`)
  // Over TLS (RFC 3848).
  expect(message.raw).toMatch(/^Received: from [^;]* with (?:UTF8SMTPS|ESMTPS)\b/m)
}

describe("Mail from", () => {
  it("nodemailer over TLS, with a non-ASCII address, is stored unchanged", async () => {
    const transport = createTransport({
      host: "127.0.0.1",
      port: service.smtpPort,
      requireTLS: true,
      tls: { rejectUnauthorized: false },
    })
    const from = "josé@bücher.example"
    await transport.sendMail({ envelope: { from, to }, raw: letter("nodemailer", from) })
    transport.close()
    const message = await received("nodemailer")
    expectWhole(message, "nodemailer")
    expect(message.from.address).toBe(from)
    expect(message.raw).toMatch(/^Return-Path: <josé@(?:bücher|xn--bcher-kva)\.example>\r$/m)
  })

  it.skipIf(!has("swaks"))("swaks, pipelined over TLS, is stored unchanged", async () => {
    const { stdout } = await run("swaks", [
      "--server",
      `127.0.0.1:${service.smtpPort}`,
      "-tls",
      "--pipeline",
      "--from",
      "grace@example.org",
      "--to",
      to,
      "--data",
      `@${fileOf("swaks")}`,
    ])
    expect(stdout).toMatch(/<~ +250 2\.6\.0 /)
    expectWhole(await received("swaks"), "swaks")
  })

  it.skipIf(!has("msmtp"))("msmtp over TLS is stored unchanged", async () => {
    const sending = run("msmtp", [
      "--host=127.0.0.1",
      `--port=${service.smtpPort}`,
      "--tls=on",
      "--tls-starttls=on",
      "--tls-certcheck=off",
      "--from=grace@example.org",
      to,
    ])
    sending.child.stdin!.end(letter("msmtp").replaceAll("\r\n", "\n"))
    await sending
    expectWhole(await received("msmtp"), "msmtp")
  })

  it.skipIf(!has("curl"))("curl over TLS is stored unchanged", async () => {
    await run("curl", [
      "-sS",
      "-k",
      "--ssl-reqd",
      `smtp://127.0.0.1:${service.smtpPort}/mx.example.org`,
      "--mail-from",
      "grace@example.org",
      "--mail-rcpt",
      to,
      "--upload-file",
      fileOf("curl"),
    ])
    expectWhole(await received("curl"), "curl")
  })

  it.skipIf(spawnSync(python, ["-c", "import smtplib"]).status !== 0)(
    "Python over TLS with SMTPUTF8 and 8BITMIME is stored unchanged",
    async () => {
      const program = `
import smtplib, ssl, sys
port, to, file = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
with smtplib.SMTP("127.0.0.1", int(port), local_hostname="mx.example.org") as smtp:
    smtp.starttls(context=context)
    smtp.ehlo()
    print(sorted(smtp.esmtp_features))
    smtp.sendmail("josé@example.org", [to], open(file, "rb").read(), mail_options=["SMTPUTF8", "BODY=8BITMIME"])
`
      const file = fileOf("python", letter("python", "josé@example.org"))
      const { stdout } = await run(python, ["-c", program, String(service.smtpPort), to, file], {
        env: { ...process.env, PYTHONIOENCODING: "utf8" },
      })
      expect(stdout).toMatch(/'8bitmime'.*'pipelining'.*'size'.*'smtputf8'/)
      const message = await received("python")
      expectWhole(message, "python")
      expect(message.from.address).toBe("josé@example.org")
    },
  )

  it.skipIf(!has("postfix"))(
    "Postfix, pipelined over TLS with several messages per connection, is stored unchanged",
    async () => {
      const postfix = await startPostfix(() => service.smtpPort, {
        smtp_tls_security_level: "encrypt",
        smtp_destination_concurrency_limit: "1",
        smtputf8_enable: "yes",
      })
      try {
        const transport = createTransport({ host: "127.0.0.1", port: postfix.port, ignoreTLS: true, pool: true })
        const subjects = ["postfix one", "postfix two", "postfix three"]
        for (const subject of subjects) {
          await transport.sendMail({ envelope: { from: "grace@example.org", to }, raw: letter(subject) })
        }
        transport.close()
        for (const subject of subjects) expectWhole(await received(subject, 60), subject)
      } finally {
        postfix.stop()
      }
    },
  )

  it.skipIf(!has("exim"))("Exim, in chunks over TLS with SMTPUTF8, is stored unchanged", async () => {
    const exim = startExim(service.smtpPort)
    try {
      const from = "josé@example.org"
      await exim.send(from, to, letter("exim", from))
      // Pipelined and in chunks (Exim's own notation).
      expect(exim.log()).toMatch(/ => \S+ .* X=TLS\S+ .* L.* K C="250 /)
      const message = await received("exim")
      expectWhole(message, "exim")
      expect(message.from.address).toBe(from)
      const long = `${letter("exim long")}${"0123456789\r\n".repeat(100_000)}`
      await exim.send(from, to, long)
      expect((await received("exim long")).size).toBeGreaterThan(long.length)
    } finally {
      exim.stop()
    }
  })

  it.skipIf(!has("opensmtpd"))("OpenSMTPD over TLS is stored unchanged", async () => {
    const relay = await startOpenSmtpd(service.smtpPort)
    try {
      const transport = createTransport({ host: "127.0.0.1", port: relay.port, ignoreTLS: true, pool: true })
      const subjects = ["opensmtpd one", "opensmtpd two"]
      for (const subject of subjects) {
        await transport.sendMail({ envelope: { from: "grace@example.org", to }, raw: letter(subject) })
      }
      transport.close()
      for (const subject of subjects) expectWhole(await received(subject, 60), subject)
    } finally {
      await relay.stop()
    }
  })
})
