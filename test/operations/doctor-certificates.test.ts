/** The doctor's findings about the certificates of the listeners. */
import { X509Certificate } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { rootCertificates } from "node:tls"
import * as CertificateChecks from "@svc/cli/doctor/CertificateChecks"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Effect, Option } from "effect"
import { describe, expect, it } from "vitest"

describe("The doctor of certificates", () => {
  it("reports a certificate that expires soon, has expired, or is for other names", () => {
    const day = 24 * 3600 * 1000
    const made = new Date("2026-01-01T00:00:00Z")
    const pem = selfSigned(["*.tunnel.example.net"], made)
    const fault = (days: number, names = ["*.tunnel.example.net"], isPublic = false) =>
      CertificateChecks.faultOf(pem, names, made.getTime() + days * day, isPublic)
    expect(fault(0)).toBeUndefined()
    expect(fault(360)).toMatchObject({ status: "warn", detail: expect.stringMatching(/ends in [45] days/) })
    expect(fault(370)).toMatchObject({ status: "fail", detail: expect.stringContaining("ended on") })
    expect(fault(0, ["mx1.example.org"])).toMatchObject({ status: "fail", detail: "does not name mx1.example.org" })
    expect(fault(0, ["*.tunnel.example.net"], true)).toMatchObject({
      status: "warn",
      remedy: expect.stringContaining("fullchain"),
    })
  })

  it("judges the certificate of each listener by the names that its clients use", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "doctor-"))
    const pemOf = (name: string) => {
      const files = { cert: path.join(folder, `${name}.crt`), key: path.join(folder, `${name}.key`) }
      const pem = selfSigned([name], new Date())
      writeFileSync(files.cert, pem.cert)
      writeFileSync(files.key, pem.key)
      return Option.some(files)
    }
    const names = { tunnelDomain: "t.example", mailServers: ["mx1.example", "mx2.example"], mailDomain: "mail.example" }
    const none = { edgeTls: Option.none(), smtpTls: Option.none(), imapTls: Option.none(), runnerTls: Option.none() }
    const findings = async (more: object) => {
      const given = { ...names, ...none, imapHost: Option.none(), environment: "development", ...more } as never
      const all = await Effect.runPromise(CertificateChecks.findings(given))
      return all.map(({ name, status, detail }) => [name, status === "ok" ? status : detail])
    }
    try {
      const other = pemOf("other.example")
      expect(await findings({})).toEqual([])
      expect(await findings({ edgeTls: other, smtpTls: other, imapTls: other, runnerTls: other })).toEqual([
        ["edge", "does not name *.t.example"],
        ["smtp", "does not name mx1.example, mx2.example"],
        ["imap and submission", "does not name mail.example"],
        ["runner", "ok"],
      ])
      expect(await findings({ edgeTls: pemOf("*.t.example"), imapTls: pemOf("mail.example") })).toEqual([
        ["edge", "ok"],
        ["imap and submission", "ok"],
      ])
      // Mail programs get their own certificate although SMTP has one.
      const ofBoth = await findings({ smtpTls: other, imapTls: pemOf("mail.example") })
      expect(ofBoth[1]).toEqual(["imap and submission", "ok"])
      // If no certificate for mail programs is configured, they get that of SMTP.
      const imapHost = Option.some("imap.example")
      expect((await findings({ smtpTls: other, imapHost }))[1]).toEqual([
        "imap and submission",
        "does not name imap.example",
      ])
      expect(await findings({ runnerTls: Option.some({ cert: "/nowhere", key: "/nowhere" }) })).toEqual([
        ["runner", expect.stringContaining("/nowhere")],
      ])
      const isProduction = { environment: "production" }
      const selfSignedSmtp = ["smtp", "is self-signed: senders that require TLS will not deliver"]
      expect(await findings(isProduction)).toEqual([selfSignedSmtp])
      const untrusted = "is not issued by an authority that clients trust"
      expect(
        await findings({
          ...isProduction,
          smtpTls: other,
          mailServers: ["other.example"],
          runnerTls: other,
          imapHost: Option.some("other.example"),
        }),
      ).toEqual([
        ["smtp", untrusted],
        ["imap and submission", untrusted],
        ["runner", "ok"],
      ])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("wants the whole chain in its order, up to an authority that clients trust", () => {
    const [first, second] = rootCertificates.slice(0, 2) as [string, string]
    const fault = (cert: string) => {
      const { validFrom } = new X509Certificate(cert)
      return CertificateChecks.faultOf({ cert, key: "" }, [], Date.parse(validFrom), true)?.status
    }
    expect([fault(first), fault(`${first}\n${second}`)]).toEqual([undefined, "warn"])
  })

  it("reports exactly the certificates that end within 14 days", () => {
    const made = new Date("2026-01-01T00:00:00Z")
    const pem = selfSigned(["a.example"], made)
    const end = Date.parse(new X509Certificate(pem.cert).validTo)
    const day = 24 * 3600 * 1000
    const status = (left: number) => CertificateChecks.faultOf(pem, ["a.example"], end - left, false)?.status ?? "ok"
    expect([14 * day, 14 * day - 1, 0, -1].map(status)).toEqual(["ok", "warn", "warn", "fail"])
  })
})
