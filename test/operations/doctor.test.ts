/** The doctor's findings, and the DNS records that it expects. */
import { createPublicKey, generateKeyPairSync } from "node:crypto"
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { knownNames } from "@svc/cli/doctor/Configuration"
import * as MailPolicyPage from "@svc/api/pages/MailPolicyPage"
import * as Dns from "@svc/cli/doctor/Dns"
import * as MailNames from "@svc/cli/doctor/MailNames"
import { keyRecord, lineOf, policyId, tagOf, type Wanted, wanted } from "@svc/cli/dns/Records"
import { load, type Settings } from "@svc/cli/serve/Settings"
import { ConfigProvider, Effect, Option } from "effect"
import { beforeAll, describe, expect, it } from "vitest"

const arc = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" })

let settings: Settings
beforeAll(async () => {
  settings = await Effect.runPromise(
    load.pipe(
      Effect.provide(
        ConfigProvider.layer(
          ConfigProvider.fromUnknown({
            SVC_BASE_URL: "https://api.example.org",
            SVC_MAIL_DOMAIN: "mail.example.org",
            SVC_MX: "mx1.example.org, mx2.example.org",
            SVC_TUNNEL_DOMAIN: "tunnel.example.net",
            SVC_ARC_KEY: String(arc),
            // The doctor would otherwise fetch the policy from its URL.
            SVC_MTA_STS: "none",
          }),
        ),
      ),
    ),
  )
})

const addresses = ["203.0.113.7", "2001:db8::7"]

/** A resolver that answers from the records of a zone file, with a reverse name for each address. */
const zone = (records: ReadonlyArray<Wanted>, more: Record<string, ReadonlyArray<string>> = {}): Dns.Ask => {
  const answers = new Map<string, Array<string>>()
  for (const { name, kind, value } of records) {
    const key = `${kind} ${name.replace(/^\*\./, "svc-doctor.")}`
    const text = kind === "TXT" ? value!.slice(1, -1) : value!
    answers.set(key, [...(answers.get(key) ?? []), text])
  }
  for (const address of addresses)
    answers.set(
      `PTR ${address}`,
      settings.mailServers.map((name) => name),
    )
  return (name, kind) => Effect.succeed(more[`${kind} ${name}`] ?? answers.get(`${kind} ${name}`) ?? [])
}
const ailing = async (dns: Dns.Ask) =>
  (await Effect.runPromise(Effect.all([Dns.findings(settings, dns), MailNames.findings(settings, dns)])))
    .flat()
    .filter(({ status }) => status !== "ok")

describe("the records", () => {
  it("cause no finding of the doctor if all of them are published", async () => {
    expect(await ailing(zone(wanted(settings, { addresses })))).toEqual([])
  })

  it("are each reported if missing, with the line to publish", async () => {
    const all = wanted(settings, { addresses })
    const kinds = new Set(all.filter(({ kind }) => kind !== "A" && kind !== "AAAA").map((record) => record))
    expect(kinds.size).toBeGreaterThan(7)
    for (const record of kinds) {
      const found = await ailing(zone(all.filter((one) => one !== record)))
      const missed = found.find(({ name }) => name === `${record.kind} ${record.name}`)
      expect(missed, lineOf(record)).toMatchObject({ remedy: lineOf(record) })
      expect(missed!.status).toBe(record.essential ? "fail" : "warn")
    }
    for (const host of ["api.example.org", "mx1.example.org", "*.tunnel.example.net", "connect.tunnel.example.net"]) {
      const found = await ailing(zone(all.filter(({ name, kind }) => name !== host || kind === "TXT")))
      expect(
        found.some(({ name, status }) => name === `A ${host}` && status === "fail"),
        host,
      ).toBe(true)
    }
  })

  it("are these, and the marked ones are needed for every feature", () => {
    const given = {
      ...settings,
      mtaSts: "enforce",
      profileBase: "https://API.example.org",
      arcKey: Option.none(),
    } as const
    const id = policyId(MailPolicyPage.policyOf({ mode: "enforce", servers: settings.mailServers }))
    const all = wanted(given, { addresses: ["203.0.113.7"] })
    expect(all.map(({ essential, name, kind, value }) => [essential ? "!" : "", name, kind, value].join(" "))).toEqual([
      "! api.example.org A 203.0.113.7",
      "! mail.example.org MX 10 mx1.example.org.",
      "! mail.example.org MX 20 mx2.example.org.",
      "! mx1.example.org A 203.0.113.7",
      "! mx2.example.org A 203.0.113.7",
      '! mail.example.org TXT "v=spf1 mx -all"',
      ' mx1.example.org TXT "v=spf1 a -all"',
      ' mx2.example.org TXT "v=spf1 a -all"',
      '! _dmarc.mail.example.org TXT "v=DMARC1; p=quarantine; rua=mailto:postmaster@mail.example.org"',
      ` _mta-sts.mail.example.org TXT "v=STSv1; id=${id}"`,
      "! mta-sts.mail.example.org A 203.0.113.7",
      ' _smtp._tls.mail.example.org TXT "v=TLSRPTv1; rua=mailto:postmaster@mail.example.org"',
      " _imaps._tcp.mail.example.org SRV 0 1 993 mail.example.org.",
      " _submissions._tcp.mail.example.org SRV 0 1 465 mail.example.org.",
      " _submission._tcp.mail.example.org SRV 0 1 587 mail.example.org.",
      "! mail.example.org A 203.0.113.7",
      " autoconfig.mail.example.org A 203.0.113.7",
      "! *.tunnel.example.net A 203.0.113.7",
      "! connect.tunnel.example.net A 203.0.113.7",
    ])
    expect(wanted(settings, { addresses: [] }).filter(({ name }) => name.includes("mta-sts"))).toEqual([])
    // The first mail server has the name of the domain, and the second one has capital letters.
    const own = wanted(
      { ...given, mailServers: ["mail.example.org", "MX.example.org"] },
      { addresses: ["2001:DB8::7"] },
    )
    const named = (name: string, kind: string) => own.filter((one) => one.name === name && one.kind === kind)
    expect(named("mail.example.org", "TXT").map(({ value }) => value)).toEqual(['"v=spf1 mx -all"'])
    expect(named("mail.example.org", "AAAA").map(({ why }) => why)).toEqual([
      "the mail server; the address needs a PTR record with this name",
    ])
    expect(named("mail.example.org", "MX").map(({ is }) => is("5 mx.example.org."))).toEqual([false, true])
    expect(["2001:db8::7", "2001:db8::8"].map(named("mail.example.org", "AAAA")[0]!.is)).toEqual([true, false])
  })

  it("are reported with what is published instead", async () => {
    const detail = async (more: Record<string, ReadonlyArray<string>>) =>
      (await ailing(zone(wanted(settings, { addresses }), more)))[0]?.detail
    expect(await detail({ "TXT _dmarc.mail.example.org": ["v=other", "site-verification=1"] })).toBe("is v=other")
    expect(await detail({ "TXT _dmarc.mail.example.org": ["site-verification=1"] })).toMatch(/^no record found \(/)
    const former = "v=DKIM1; k=rsa; p=AAAA"
    expect(await detail({ "TXT arc._domainkey.mail.example.org": [former] })).toBe(`is ${former}`)
  })

  it("point mail programs to the host in the settings, and to the autoconfiguration", () => {
    const imapHost = Option.some("imap.example.org")
    const lines = wanted({ ...settings, imapHost }, { addresses: ["203.0.113.7"] }).map(lineOf)
    expect(lines).toContain("_imaps._tcp.mail.example.org.  3600  IN  SRV  0 1 993 imap.example.org.")
    for (const host of ["imap.example.org", "autoconfig.mail.example.org"]) {
      expect(lines).toContain(`${host}.  3600  IN  A  203.0.113.7`)
    }
    // If the API uses the same host name, its address is listed once.
    const same = wanted({ ...settings, imapHost: Option.some("api.example.org") }, { addresses: ["203.0.113.7"] })
    expect(same.filter(({ name, kind }) => name === "api.example.org" && kind === "A")).toHaveLength(1)
  })

  it("are printed as a zone file with strings of 255 bytes, and a comment if an address is unknown", () => {
    const lines = wanted(settings, { addresses }).map(lineOf)
    const key = lines.find((line) => line.includes("arc._domainkey"))!
    const strings = [...key.matchAll(/"([^"]*)"/g)].map(([, text]) => text!)
    expect(strings.length).toBeGreaterThan(1)
    expect(strings.every((text) => text.length <= 255)).toBe(true)
    expect(strings.join("")).toBe(keyRecord(String(arc)))
    expect(lines).toContain("*.tunnel.example.net.  3600  IN  AAAA  2001:db8::7")
    expect(lines).toContain("mail.example.org.  3600  IN  MX  20 mx2.example.org.")
    const unknown = wanted(settings, { addresses: [] }).filter(({ kind }) => kind === "A")
    expect(unknown.map(lineOf).every((line) => line.startsWith("; "))).toBe(true)
  })

  it("of keys contain the public key in the format of its algorithm", () => {
    const rsa = createPublicKey(String(arc)).export({ type: "spki", format: "der" }).toString("base64")
    expect(tagOf(keyRecord(String(arc)), "p")).toBe(rsa)
    const ed = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" })
    expect(Buffer.from(tagOf(keyRecord(String(ed)), "p")!, "base64").length).toBe(32)
  })

  it("of a policy get a new id when the policy changes", () => {
    expect(policyId("a")).not.toBe(policyId("b"))
    expect(policyId("a")).toMatch(/^[0-9a-z]{1,32}$/)
  })
})

describe("the doctor", () => {
  const with_ = (more: Record<string, ReadonlyArray<string>>) => ailing(zone(wanted(settings, { addresses }), more))

  it("reports reasons for which other servers would reject mail", async () => {
    const spf = "TXT mail.example.org"
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [`TXT s${n}.example.org`, [`v=spf1 include:s${n + 1}.example.org -all`]]),
    )
    expect((await with_({ [spf]: ["v=spf1 mx -all", "v=spf1 -all"] })).map(({ detail }) => detail)).toEqual([
      expect.stringContaining("has 2 records"),
    ])
    expect(
      (await with_({ ...many, [spf]: ["v=spf1 include:s0.example.org -all"] })).map(({ detail }) => detail),
    ).toEqual([expect.stringMatching(/needs \d+ look-ups/)])
    const endless = await with_({ [spf]: ["v=spf1 include:mail.example.org -all"] })
    expect(endless.map(({ detail }) => detail)).toEqual([expect.stringMatching(/needs \d+ look-ups/)])
    const lookups = (count: number) => with_({ [spf]: [`v=spf1 ${"?a:x.example ".repeat(count)}ip4:192.0.2.1 -all`] })
    expect(await lookups(10)).toEqual([])
    expect((await lookups(11)).map(({ detail }) => detail)).toEqual([expect.stringContaining("needs 11 look-ups")])
    // An include counts, and so does what it includes; a mechanism without a target includes nothing.
    const nested = {
      "TXT a.example": ["google-site-verification=1", "v=spf1 a mx redirect=b.example"],
      "TXT b.example": [`v=spf1 ${"exists:%{i}.c.example ".repeat(5)}ptr -all`],
    }
    const within = (record: string) => with_({ ...nested, [spf]: ["google-site-verification=2", record] })
    expect(await within("v=spf1 include:a.example include -all")).toMatchObject([
      { detail: expect.stringContaining("needs 11 ") },
    ])
    expect(await within("v=spf1 include:a.example -all")).toEqual([])
    // The record of an eleventh include is not looked up.
    const [tooMany] = await with_({ ...nested, [spf]: [`v=spf1 ${"a ".repeat(10)}include:a.example -all`] })
    expect(tooMany!.detail).toMatch(/needs 11 /)
    expect((await with_({ "CNAME mx1.example.org": ["elsewhere.example.org"] }))[0]).toMatchObject({
      name: "MX",
      status: "fail",
    })
    expect((await with_({ "PTR 203.0.113.7": ["host-7.provider.example"] }))[0]).toMatchObject({
      name: "PTR",
      status: "warn",
      remedy: expect.stringContaining("mx1.example.org"),
      detail: "203.0.113.7 is host-7.provider.example, not mx1.example.org",
    })
    expect((await with_({ "PTR 203.0.113.7": [] }))[0]!.detail).toBe("203.0.113.7 is nobody, not mx1.example.org")
    const capital = { ...settings, mailServers: ["MX1.example.org"] }
    const known: Readonly<Record<string, ReadonlyArray<string>>> = {
      "A MX1.example.org": ["192.0.2.1"],
      "AAAA MX1.example.org": ["2001:db8::1"],
      "PTR 192.0.2.1": ["mx1.example.org"],
    }
    const dns: Dns.Ask = (name, kind) => Effect.succeed(known[`${kind} ${name}`] ?? [])
    expect(await Effect.runPromise(MailNames.findings(capital, dns))).toMatchObject([
      { name: "PTR", status: "ok", detail: "192.0.2.1 is MX1.example.org" },
      { name: "PTR", status: "warn", detail: "2001:db8::1 is nobody, not MX1.example.org" },
    ])
    const issuers: Dns.Ask = (_, kind) => Effect.succeed(kind === "CAA" ? ["ca.example"] : [])
    expect(await Effect.runPromise(MailNames.findings(settings, issuers))).toMatchObject([
      { name: "CAA", status: "ok", detail: "only ca.example may issue certificates for tunnel.example.net" },
    ])
  })

  it("distinguishes a DNS timeout from a missing record", async () => {
    const found = await ailing(() => Effect.fail("silent"))
    expect(found.length).toBeGreaterThan(10)
    expect(found.every(({ status, detail }) => status === "warn" && detail === "DNS did not answer")).toBe(true)
  })

  it.each([
    ["mail.example.org", "tunnel.example.net", true],
    ["mail.localhost", "tunnel.example.net", false],
    ["mail.example.org", "tunnel.localhost", false],
  ])("looks up records of %s and %s: %s", (mailDomain, tunnelDomain, looks) => {
    expect(Dns.isPublic({ ...settings, mailDomain, tunnelDomain })).toBe(looks)
  })

  it("knows the settings that docs/settings.md lists, and no others", async () => {
    const table = readFileSync(path.join(import.meta.dirname, "..", "..", "docs", "settings.md"), "utf8")
    const listed = new Set<string>()
    for (const [, names] of table.matchAll(/^\| (`[^|]*) \|/gm)) {
      let first = ""
      for (const [, name] of names!.matchAll(/`(\w+)`/g)) {
        // In the documents, `_B` after `SVC_A_X` means `SVC_A_B`.
        if (!name!.startsWith("_")) first = name!
        listed.add(name!.startsWith("_") ? first.replace(/_[A-Z]+$/, name!) : name!)
      }
    }
    const ours = (names: Iterable<string>) =>
      [...names].filter((name) => name.startsWith("SVC_") && !/_FILE$|^SVC_KEY$|^SVC_API_URL$/.test(name)).toSorted()
    expect(ours(await Effect.runPromise(knownNames))).toEqual(ours(listed))
  })
})
