/** Certificates that match TLSA records, by time and name. */
import { createHash, X509Certificate } from "node:crypto"
import type { TLSSocket } from "node:tls"
import { holds } from "@svc/mail-gateway/mail/sending/dane/Tlsa"
import { describe, expect, it } from "vitest"
import { has } from "../../harness/Programs.ts"
import { chained } from "./Chain.ts"

const days = (count: number) => Date.now() + count * 24 * 60 * 60_000
const raw = (pem: string) => new X509Certificate(pem).raw

/** A connection to a server that presents these certificates, the last of which issued itself. */
const presenting = (...pems: ReadonlyArray<string>) => {
  const chain = pems.map((pem): { raw: Buffer; issuerCertificate?: object } => ({ raw: raw(pem) }))
  for (const [at, one] of chain.entries()) one.issuerCertificate = chain[at + 1] ?? one
  // `holds` reads nothing else of a socket.
  return { getPeerCertificate: () => chain[0] ?? {} } as unknown as TLSSocket
}

/** The record that names a certificate by its hash: 2 names an authority, 3 the server's own certificate. */
const naming = (usage: 2 | 3, pem: string) => ({
  usage,
  selector: 0,
  matching: 1,
  data: createHash("sha256").update(raw(pem)).digest(),
})

describe.skipIf(!has("openssl"))("A certificate below an authority that TLSA records name", () => {
  const { authority, own, below } = chained()
  const names = ["mx.example.org"]
  const server = presenting(own.own, authority)
  const deep = presenting(below.server, below.authority, authority)
  const record = naming(2, authority)

  it("is valid for the server's name, while every certificate up to the authority is", () => {
    expect(holds(server, [record], ["x.example", ...names], days(0.5))).toBe(true)
    expect(holds(server, [record], ["x.example"], days(0.5))).toBe(false)
    expect(holds(server, [record], names, days(-0.5))).toBe(false)
    expect(holds(server, [record], names, days(1.5))).toBe(false)
    expect(holds(deep, [record], names, days(0.5))).toBe(true)
    expect(holds(deep, [naming(2, below.authority)], names, days(1.5))).toBe(true)
    // The authority in between has expired.
    expect(holds(deep, [record], names, days(1.5))).toBe(false)
  })

  it("needs a chain of authorities, and a name without a wildcard within a label", () => {
    const byServer = presenting(below.other, below.server, below.authority, authority)
    expect(holds(byServer, [record], names, days(0.5))).toBe(false)
    const partial = presenting(below.wildcard, below.authority, authority)
    expect(holds(partial, [record], names, days(0.5))).toBe(false)
    expect(holds(presenting(own.own), [record], names, days(0.5))).toBe(false)
    expect(holds(presenting(), [record], names, days(0.5))).toBe(false)
  })

  it("is not mistaken for the server's own certificate, and that one not for an authority", () => {
    expect(holds(server, [naming(3, authority)], names, days(0.5))).toBe(false)
    expect(holds(server, [naming(2, own.own)], names, days(0.5))).toBe(false)
    // A record of the server's own certificate names it, whatever its name and its time (RFC 7672 section 3.1.1).
    expect(holds(server, [naming(3, own.own)], [], days(9))).toBe(true)
  })
})
