/**
 * Matches a server's certificate against its TLSA records (RFC 6698, for SMTP RFC 7672 section 3.1): the certificate
 * itself (DANE-EE), or an authority in the presented chain (DANE-TA).
 */
import { createHash, X509Certificate } from "node:crypto"
import type { TLSSocket } from "node:tls"
import type { Tlsa } from "./Message.ts"

const endEntity = 3
const trustAnchor = 2
const lengths: Readonly<Record<number, number>> = { 1: 32, 2: 64 }

/** RFC 7672 section 3.1.3: the usages that rely on public authorities are not usable for SMTP. */
export const isUsable = ({ usage, selector, matching, data }: Tlsa): boolean =>
  (usage === endEntity || usage === trustAnchor) &&
  (selector === 0 || selector === 1) &&
  (matching === 0 ? data.length > 0 : lengths[matching] === data.length)

const matches = (certificate: X509Certificate, { selector, matching, data }: Tlsa): boolean => {
  const chosen = selector === 0 ? certificate.raw : certificate.publicKey.export({ type: "spki", format: "der" })
  const selected =
    matching === 0
      ? chosen
      : createHash(matching === 1 ? "sha256" : "sha512")
          .update(chosen)
          .digest()
  return selected.equals(data)
}

const isCurrent = ({ validFromDate, validToDate }: X509Certificate, now: number) =>
  validFromDate.getTime() <= now && now <= validToDate.getTime()

/** The maximum chain length. */
const longest = 10

/** Returns the presented chain, the server's own certificate first. */
const chainOf = (socket: TLSSocket): ReadonlyArray<X509Certificate> => {
  const chain: Array<X509Certificate> = []
  let one = socket.getPeerCertificate(true)
  while (one?.raw !== undefined && chain.length < longest) {
    const certificate = new X509Certificate(one.raw)
    if (chain.at(-1)?.raw.equals(certificate.raw) === true) break
    chain.push(certificate)
    one = one.issuerCertificate
  }
  return chain
}

/** Returns whether each certificate is signed by the next, up to the authority at `anchor`. */
const leadsTo = (chain: ReadonlyArray<X509Certificate>, anchor: number, now: number) =>
  chain.slice(0, anchor).every((certificate, at) => {
    const issuer = chain[at + 1]!
    return (
      isCurrent(certificate, now) &&
      issuer.ca &&
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey)
    )
  })

/**
 * Returns whether the presented chain matches a record. `names` are the allowed names of a certificate below a DANE-TA
 * authority; a DANE-EE certificate may have any name.
 */
export const holds = (
  socket: TLSSocket,
  records: ReadonlyArray<Tlsa>,
  names: ReadonlyArray<string>,
  now: number,
): boolean => {
  const chain = chainOf(socket)
  const [own] = chain
  if (own === undefined) return false
  if (records.some((record) => record.usage === endEntity && matches(own, record))) return true
  const hasName = names.some((name) => own.checkHost(name, { partialWildcards: false }) !== undefined)
  return (
    hasName &&
    chain.some(
      (authority, at) =>
        at > 0 &&
        records.some((record) => record.usage === trustAnchor && matches(authority, record)) &&
        leadsTo(chain, at, now),
    )
  )
}
