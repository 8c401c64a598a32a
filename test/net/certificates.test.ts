/** Certificates from files: every listener uses a renewed certificate without a restart. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect as connectPlain, type Socket } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { connect, type ConnectionOptions } from "node:tls"
import * as Certificates from "@svc/cluster/net/Certificates"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Effect, References } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { eventually, startService } from "../harness/Service.ts"

let directory: string
let files: { cert: string; key: string }
beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), "svc-certificate-"))
  files = { cert: path.join(directory, "tls.crt"), key: path.join(directory, "tls.key") }
})
afterEach(() => rmSync(directory, { recursive: true }))

const quiet = Effect.provideService(References.MinimumLogLevel, "None")
const made = () => selfSigned(["mx.example.org"], new Date())
const put = (pem: { readonly cert: string; readonly key: string }) => {
  writeFileSync(files.cert, pem.cert)
  writeFileSync(files.key, pem.key)
}

const serial = (options: ConnectionOptions & { readonly socket?: Socket }) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", checkServerIdentity: () => undefined, ...options }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    }).on("error", reject)
  })

/** Returns the serial number of a server's certificate after STARTTLS. Each response triggers the next command. */
const startTlsSerial = (port: number, answered: RegExp, commands: ReadonlyArray<string>) =>
  new Promise<string>((resolve, reject) => {
    const plain = connectPlain({ port, host: "127.0.0.1" }).on("error", reject)
    const remaining = [...commands]
    plain.on("data", (chunk: Buffer) => {
      if (!answered.test(chunk.toString())) return
      const command = remaining.shift()
      if (command !== undefined) return void plain.write(command)
      plain.removeAllListeners("data")
      serial({ socket: plain, rejectUnauthorized: false }).then(resolve, reject)
    })
  })
const smtpSerial = (port: number) =>
  startTlsSerial(port, /(?:^|\n)\d{3} [^\n]*\n$/, ["EHLO client.example.org\r\n", "STARTTLS\r\n"])
const imapSerial = (port: number) => startTlsSerial(port, /(?:^|\n)(?:\*|a) OK [^\n]*\n$/, ["a STARTTLS\r\n"])

describe("a certificate", () => {
  it("is not replaced by an unusable one: another certificate's key, an invalid certificate, a missing file", async () => {
    const [first, second] = [made(), made()]
    const renewed = () => Effect.runPromise(quiet(Certificates.renewed(files, "smtp", first)))
    put(first)
    expect(await renewed()).toBeUndefined()
    writeFileSync(files.cert, second.cert)
    expect(await renewed()).toBeUndefined()
    writeFileSync(files.cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    expect(await renewed()).toBeUndefined()
    rmSync(files.cert)
    expect(await renewed()).toBeUndefined()
    put(second)
    expect(await renewed()).toEqual(second)
  })

  it("that is unusable at the start is reported with its listener", async () => {
    const refusal = await Effect.runPromise(
      Effect.flip(Certificates.read({ cert: "/nowhere", key: "/nowhere" }, "smtp")),
    )
    expect(refusal.message).toMatch(/^The certificate of smtp cannot be used: ENOENT.*\/nowhere/)
  })

  it("of SMTP, IMAP, submission and a runner is replaced for new connections after its renewal", async () => {
    const first = made()
    put(first)
    const service = await startService({
      env: {
        SVC_SMTP_TLS_CERT: files.cert,
        SVC_SMTP_TLS_KEY: files.key,
        SVC_RUNNER_TLS_CA: files.cert,
        SVC_RUNNER_TLS_CERT: files.cert,
        SVC_RUNNER_TLS_KEY: files.key,
      },
    })
    try {
      const [runner] = await eventually(
        () => service.query<{ address: string }>((sql) => sql`select address from cluster_runners`),
        ([row]) => row !== undefined,
      )
      const port = Number(/:(\d+)$/.exec(runner!.address)![1])
      const runnerSerial = (pem: typeof first) => serial({ ...pem, ca: pem.cert, port, servername: "runner" })
      const shown = [await smtpSerial(service.smtpPort), await runnerSerial(first)]
      // Mail listeners without their own certificate use the one of SMTP.
      expect(await imapSerial(service.imapPort)).toBe(shown[0])
      expect(await smtpSerial(service.submissionPort)).toBe(shown[0])
      // The monitor knows the expiry of every certificate.
      expect([...Certificates.expiryOf.keys()]).toEqual(expect.arrayContaining(["imap", "smtp", "submission"]))
      const second = made()
      put(second)
      for (const now of [
        () => smtpSerial(service.smtpPort),
        () => imapSerial(service.imapPort),
        () => smtpSerial(service.submissionPort),
      ]) {
        await eventually(now, (renewed) => renewed !== shown[0])
      }
      // The listener uses the new certificate, and trusts only peers whose certificate the new authority signed.
      await eventually(
        () => runnerSerial(second).catch(() => shown[1]),
        (now) => now !== shown[1],
      )
      await expect(runnerSerial(first)).rejects.toThrow()
    } finally {
      await service.stop()
    }
  })
})
