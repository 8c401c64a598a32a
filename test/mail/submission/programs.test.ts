/** Programs that submit mail over TLS: nodemailer always; curl, swaks and msmtp if installed. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { connect } from "node:net"
import { promisify } from "node:util"
import { ImapFlow } from "imapflow"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../../harness/Client.ts"
import { converse } from "../../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../../harness/Service.ts"
import { type Program, program } from "./Programs.ts"
import { has } from "../../harness/Programs.ts"

const run = promisify(execFile)

const directory = mkdtempSync(path.join(os.tmpdir(), "svc-submission-"))
const files = { cert: path.join(directory, "cert.pem"), key: path.join(directory, "key.pem") }
const renew = (name: string) => {
  const { cert, key } = selfSigned([name], new Date())
  writeFileSync(files.key, key)
  writeFileSync(files.cert, cert)
}

let service: OwnService
let ada: Program
let bob: Program
beforeAll(async () => {
  renew("mail.localhost")
  service = await startService({
    env: { SVC_SMTP_TLS_CERT: files.cert, SVC_SMTP_TLS_KEY: files.key, SVC_PROXY_PROTOCOL_FROM: "127.0.0.3" },
  })
  const token = (await signUp(service.base)).session
  ada = await program(service, token)
  bob = await program(service, token, [ada.address])
  await ada.allow(bob.address)
})
afterAll(async () => {
  await service.stop()
  rmSync(directory, { recursive: true })
})

const letter = (subject: string) =>
  `From: Ada <${ada.address}>\r\nTo: ${bob.address}\r\nSubject: ${subject}\r\nMessage-ID: <${subject}@laptop.example>\r\n\r\nHello.\r\n`

const fileOf = (subject: string) => {
  const file = path.join(directory, subject)
  writeFileSync(file, letter(subject))
  return file
}

describe("A person replies in the name of an agent", () => {
  it("with nodemailer and imapflow: one writes, the other reads, replies and files its copy", async () => {
    const out = ada.transport({ requireTLS: true })
    await out.sendMail({ from: ada.address, to: bob.address, subject: "Question", text: "Six times seven?" })
    out.close()
    await bob.received("Question")
    const imap = new ImapFlow({
      host: "127.0.0.1",
      port: service.imapsPort,
      secure: true,
      auth: { user: bob.user, pass: bob.pass },
      tls: { rejectUnauthorized: false },
      logger: false,
    })
    await imap.connect()
    const lock = await imap.getMailboxLock("INBOX")
    const question = await imap.fetchOne("*", { envelope: true })
    lock.release()
    if (question === false || question === undefined) throw new Error("there is no message")
    const answering = bob.transport({ port: service.submissionsPort, secure: true })
    const answer = {
      from: bob.address,
      to: ada.address,
      subject: "Re: Question",
      inReplyTo: question.envelope!.messageId!,
      references: question.envelope!.messageId!,
      messageId: "<answer@laptop.example>",
      text: "42",
    }
    await answering.sendMail(answer)
    answering.close()
    await imap.append("Sent", `Message-ID: <answer@laptop.example>\r\nSubject: Re: Question\r\n\r\n42\r\n`, ["\\Seen"])
    expect(await imap.status("Sent", { messages: true })).toMatchObject({ messages: 1 })
    await imap.logout()
    const { id, thread_id } = await ada.received("Re: Question")
    expect((await ada.read(id)).text).toMatch(/^42\n\n---\n/)
    const [question_sent] = await ada.outbound()
    expect(thread_id).toBe(question_sent.thread_id)
  })

  it.skipIf(!has("curl"))("with curl, over implicit TLS and with OAUTHBEARER", async () => {
    const upload = (subject: string, url: string, ...more: ReadonlyArray<string>) =>
      run("curl", [
        "-sS",
        "-k",
        url,
        "--mail-from",
        ada.address,
        "--mail-rcpt",
        bob.address,
        "--upload-file",
        fileOf(subject),
        ...more,
      ])
    await upload("curl-tls", `smtps://127.0.0.1:${service.submissionsPort}/laptop`, "--user", `${ada.user}:${ada.pass}`)
    await upload(
      "curl-key",
      `smtp://127.0.0.1:${service.submissionPort}/laptop`,
      "--ssl-reqd",
      "--user",
      ada.user,
      "--oauth2-bearer",
      ada.key,
    )
    await bob.received("curl-tls")
    await bob.received("curl-key")
    const wrong = await upload(
      "curl-no",
      `smtps://127.0.0.1:${service.submissionsPort}`,
      "--user",
      `${ada.user}:x`,
    ).then(
      () => "taken",
      (error: { stderr: string }) => error.stderr,
    )
    expect(wrong).toMatch(/curl: \(67\)/)
  })

  it.skipIf(!has("swaks"))("with swaks", async () => {
    const { stdout } = await run("swaks", [
      "--server",
      `127.0.0.1:${service.submissionPort}`,
      "-tls",
      "--auth",
      "LOGIN",
      "--auth-user",
      ada.user,
      "--auth-password",
      ada.pass,
      "--from",
      ada.address,
      "--to",
      bob.address,
      "--h-Subject",
      "swaks",
      "--attach",
      `@${fileOf("swaks-file")}`,
    ])
    expect(stdout).toMatch(/250 2\.6\.0 Queued as msg_/)
    await bob.received("swaks")
  })

  it.skipIf(!has("msmtp"))("with msmtp", async () => {
    const child = run("msmtp", [
      "--host=127.0.0.1",
      `--port=${service.submissionsPort}`,
      "--tls=on",
      "--tls-starttls=off",
      "--tls-certcheck=off",
      "--auth=plain",
      `--user=${ada.user}`,
      `--passwordeval=echo ${ada.pass}`,
      `--from=${ada.address}`,
      bob.address,
    ])
    child.child.stdin!.end(letter("msmtp"))
    await child
    await bob.received("msmtp")
  })
})

/** Returns the greeting for a client at this address. */
const greeting = (localAddress: string) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect({ port: service.submissionPort, host: "127.0.0.1", localAddress })
    socket.once("data", (chunk) => {
      resolve(chunk.toString())
      socket.destroy()
    })
    socket.on("error", reject)
  })

describe("A submission connection", () => {
  it("behind a load balancer belongs to its client, also with implicit TLS", async () => {
    const greeted = (port: number, secure: boolean) =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.3" }, () => {
          socket.write("PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n")
          const stream = secure ? connectTls({ socket, rejectUnauthorized: false }) : socket
          stream.once("data", (chunk) => {
            resolve(chunk.toString())
            socket.destroy()
          })
          stream.on("error", reject)
        })
        socket.on("error", reject)
      })
    expect(await greeted(service.submissionPort, false)).toBe("220 mail.localhost ESMTP submission\r\n")
    expect(await greeted(service.submissionsPort, true)).toBe("220 mail.localhost ESMTP submission\r\n")
  })

  it("is refused before the handshake if its client has too many, and accepted after they have closed", async () => {
    // Slightly more than allowed; the refusals show that the limit is reached.
    const held = Array.from({ length: 110 }, () =>
      connect({ port: service.submissionsPort, host: "127.0.0.1", localAddress: "127.0.0.9" }).on("error", () => {}),
    )
    await eventually(
      async () => held.filter(({ destroyed }) => destroyed).length,
      (turnedAway) => turnedAway === 10,
    )
    await eventually(
      () => greeting("127.0.0.9"),
      (reply) => reply === "421 4.7.0 Too many connections, try again in a moment\r\n",
    )
    for (const socket of held) socket.destroy()
    await eventually(
      () => greeting("127.0.0.9"),
      (reply) => reply.startsWith("220 "),
    )
  })

  it("presents a renewed certificate, like one with the other mail servers", async () => {
    const shown = (options: ConnectionOptions) =>
      new Promise<string>((resolve, reject) => {
        const socket = connectTls({ ...options, host: "127.0.0.1", rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().subjectaltname ?? "")
          socket.destroy()
        })
        socket.on("error", reject)
      })
    const after = async (port: number, ...commands: ReadonlyArray<string>) => {
      const socket = connect(port, "127.0.0.1")
      for (const command of commands) {
        await new Promise((resolve) => socket.once("data", resolve))
        socket.write(`${command}\r\n`)
      }
      await new Promise((resolve) => socket.once("data", resolve))
      return shown({ socket })
    }
    const all = async () => [
      await shown({ port: service.submissionsPort }),
      await shown({ port: service.imapsPort }),
      await after(service.submissionPort, "EHLO x", "STARTTLS"),
      await after(service.imapPort, "a STARTTLS"),
      await after(service.smtpPort, "EHLO x", "STARTTLS"),
    ]
    expect(await all()).toEqual(Array(5).fill("DNS:mail.localhost"))
    renew("renewed.localhost")
    await eventually(all, (names) => names.every((name) => name === "DNS:renewed.localhost"), 90)
  })

  it("accepts no password without TLS outside Development", async () => {
    const strict = await startService({
      env: {
        SVC_ENV: "production",
        SVC_BASE_URL: "http://127.0.0.1:1",
        SVC_MAIL_DOMAIN: "mail.example",
        SVC_TUNNEL_DOMAIN: "tunnel.example",
        SVC_SMTP_RELAY_URL: "smtp://127.0.0.1:1",
      },
    })
    try {
      const commands = ["EHLO laptop\r\n", "AUTH PLAIN AGFkYQB4\r\n", "MAIL FROM:<ada@mail.example>\r\n", "QUIT\r\n"]
      const [, hello, auth, mail] = await converse(strict.submissionPort, commands)
      expect(hello).not.toMatch(/AUTH/)
      expect(hello).toMatch(/STARTTLS/)
      expect(auth).toMatch(/^500 /)
      expect(mail).toBe("530 5.7.0 STARTTLS is required before login")
      const spoken = await new Promise<string>((resolve, reject) => {
        const socket = connectTls({ port: strict.submissionsPort, host: "127.0.0.1", rejectUnauthorized: false })
        let text = ""
        socket.on("data", (chunk) => {
          text += chunk.toString()
          if (text.endsWith("submission\r\n")) socket.write("EHLO laptop\r\nQUIT\r\n")
        })
        socket.on("close", () => resolve(text))
        socket.on("error", reject)
      })
      expect(spoken).toContain("AUTH PLAIN LOGIN OAUTHBEARER\r\n")
      expect(spoken).not.toContain("STARTTLS")
    } finally {
      await strict.stop()
    }
  })

  it("rejects oversized messages, and what no legitimate program sends", async () => {
    const tries = async (body: string, parameters = "SIZE=100 AUTH=<>") =>
      (
        await converse(service.submissionPort, [
          "EHLO laptop\r\n",
          `AUTH PLAIN ${Buffer.from(`\0${ada.user}\0${ada.pass}`).toString("base64")}\r\n`,
          `MAIL FROM:<${ada.address}> ${parameters}\r\n`,
          `RCPT TO:<${bob.address}>\r\n`,
          "DATA\r\n",
          `${body}\r\n.\r\n`,
        ])
      ).join("\n")
    expect(await tries(letter("large"), "SIZE=99999999")).toMatch(/^552 /m)
    expect(await tries(`${letter("bare")}one\ntwo`)).toMatch(/^554 5\.6\.0 Lines must end/m)
    expect(await tries(`${letter("nul")}\0`)).toMatch(/^554 5\.6\.0 The message contains NUL/m)
    expect(await tries(`${"X-A: b\r\n".repeat(3_000)}${letter("header")}`)).toMatch(/^554 5\.6\.0 The header/m)
  })
})

it("the submission listener is on the health page and in the autoconfiguration", async () => {
  const health = await call(service.base, "GET", "/api/healthz")
  expect(health.body.components.find((one: any) => one.name === "submission")).toMatchObject({
    status: "pass",
    detail: `listening on ports ${service.submissionPort} and ${service.submissionsPort}`,
  })
})
