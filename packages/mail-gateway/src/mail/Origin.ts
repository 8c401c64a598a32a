/**
 * The origin verdict of a message: whether the domain of `From` sent it. Evaluates SPF, DKIM and DMARC over the bytes
 * as received (RFC 7208, RFC 6376, RFC 7489).
 *
 * `verified` means that a domain of the author's organisation authenticated exactly what is shown. Organisations are
 * determined by the Public Suffix List, not by DNS.
 */
import type { AgentClaim } from "@svc/domain/mail/MailboxProtocol"
import type { OriginVerdict } from "@svc/domain/mail/Message"
import { documentUrl } from "@svc/domain/proof/DidWeb"
import { evaluateDmarc } from "mailauth/lib/dmarc/index.js"
import { spf } from "mailauth/lib/spf/index.js"
import { formatAuthHeaderRow } from "mailauth/lib/tools.js"
import { aligned, author, type Author } from "./Author.ts"
import type { RecentVerdicts } from "./judging/RecentVerdicts.ts"
import * as Results from "./judging/Results.ts"
import * as Signatures from "./judging/Signatures.ts"
import { header, valueOf } from "./mime/Header.ts"
import type { Part } from "./mime/Part.ts"

/** The SMTP session by which a message arrived. */
export interface Arrival {
  readonly ip: string
  readonly helo: string
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string
  /** The service's host name, used in `Authentication-Results`. */
  readonly host: string
  /** The message did not arrive by SMTP: it is parsed but not judged. */
  readonly isOnlyRead?: boolean
  /** The message arrived at a bounce address: its report is parsed, and its origin is not judged. */
  readonly isBounce?: boolean
}

export interface Verdict {
  readonly origin: OriginVerdict
  /** The `Authentication-Results` field to add, without its line break, or null if nothing could be judged. */
  readonly header: string | null
  /** The signed DID of the sender, whose document is read after the message was accepted. */
  readonly claim?: AgentClaim
}

/** The verdict of a message that could not be judged. */
export const unjudged: Verdict = {
  origin: { verdict: "error", spf: "none", dkim: "none", dmarc: "none", domain: null },
  header: null,
}

/** Returns the RFC 8601 result of a list of signatures. A passing one outweighs the others. */
const dkimResult = (signatures: ReadonlyArray<Signatures.Signature>): string => {
  const results = signatures.map(({ result }) => result)
  return (
    results.find((word) => word === "pass") ??
    results.find((word) => word === "temperror") ??
    results.find((word) => word !== "none") ??
    "none"
  )
}

/** Authenticated domains that are aligned with the author. Each alone proves the origin. */
interface Evidence {
  readonly domains: { readonly spf: ReadonlyArray<string>; readonly dkim: ReadonlyArray<string> }
  /** DNS did not respond to a query that could have proved the origin. */
  readonly inDoubt: boolean
}

const evidence = (
  writer: Author,
  sender: { readonly domain: string; readonly result: string },
  signatures: ReadonlyArray<Signatures.Signature>,
): Evidence => {
  const ours = signatures.filter(({ domain, coversAll }) => coversAll && aligned(domain, writer.domain))
  const isSender = aligned(sender.domain, writer.domain)
  return {
    domains: {
      spf: isSender && sender.result === "pass" ? [sender.domain] : [],
      dkim: ours.filter(({ result }) => result === "pass").map(({ domain }) => domain),
    },
    inDoubt: (isSender && sender.result === "temperror") || ours.some(({ result }) => result === "temperror"),
  }
}

/** A message with repeated fields is ambiguous, so nothing counts as evidence. */
const noEvidence: Evidence = { domains: { spf: [], dkim: [] }, inDoubt: false }

const verdictOf = (dmarc: string, { domains, inDoubt }: Evidence): OriginVerdict["verdict"] => {
  if (dmarc === "pass") return "verified"
  if (dmarc === "none" && domains.spf.length + domains.dkim.length > 0) return "verified"
  if (inDoubt || dmarc === "temperror") return "error"
  return dmarc === "none" ? "unverified" : "failed"
}

/** Evaluates SPF for the sender of the session. */
const spfOf = async (arrival: Arrival, lookup: Signatures.Lookup) => {
  const { ip, helo, mailFrom, host } = arrival
  const { domain, status } = await spf({ ip, helo, sender: mailFrom, mta: host, resolver: lookup })
  return { domain, result: status.result, row: formatAuthHeaderRow("spf", status) }
}

/**
 * Evaluates DMARC for an author's domain as {@link Author} normalizes it, since the library accepts look-alike
 * characters that DNS treats as equal.
 */
const dmarcOf = async (author: string, { domains }: Evidence, lookup: Signatures.Lookup) => {
  const { response, dkimAligned } = await evaluateDmarc({
    headerFrom: [author],
    spfDomains: [...domains.spf],
    dkimDomains: domains.dkim.map((domain) => ({ id: domain, domain, aligned: false })),
    resolver: lookup,
  })
  return response === false
    ? { result: "permerror", row: "dmarc=permerror", signedBy: [] }
    : {
        result: response.status.result,
        row: formatAuthHeaderRow("dmarc", response.status),
        // A domain with a policy may require that the signing domain is exactly the author's.
        signedBy:
          dkimAligned === undefined
            ? domains.dkim
            : domains.dkim.filter((domain) => dkimAligned.has(domain.toLowerCase())),
      }
}

/**
 * Returns the DID that the message claims, if it is stated once and an aligned signature covers it. A message without
 * such a field claims nothing, and neither does one whose field anyone could have added.
 */
const claimOf = (
  raw: Buffer,
  root: Part,
  signatures: ReadonlyArray<Signatures.Signature>,
  signedBy: ReadonlyArray<string>,
): AgentClaim | undefined => {
  const rows = root.rows.filter(({ key }) => key === Signatures.agentField)
  const did = rows.length === 1 ? valueOf(raw, rows[0]!).trim() : ""
  if (documentUrl({ environment: "production" }, did) === undefined) return undefined
  const covering = signatures.find(
    ({ domain, result, coversAll, coversAgent }) =>
      result === "pass" && coversAll && coversAgent && signedBy.includes(domain),
  )
  return covering === undefined ? undefined : { did, domain: covering.domain }
}

/** Judges a message. `recent` caches results of the same sender. */
export const judge = async (
  raw: Buffer,
  root: Part,
  arrival: Arrival,
  lookup: Signatures.Lookup,
  recent?: RecentVerdicts,
): Promise<Verdict> => {
  const writer =
    root.rows.filter(({ key }) => key === "from").length === 1 ? author(header(raw, root.rows, "from")) : undefined
  const evaluateSpf = () => spfOf(arrival, lookup)
  const [signed, sender] = await Promise.all([
    Signatures.verify(raw, root, lookup),
    recent === undefined
      ? evaluateSpf()
      : recent.evaluate(["spf", arrival.ip, arrival.helo, arrival.mailFrom], evaluateSpf),
  ])
  const results = { spf: sender.result, dkim: dkimResult(signed.signatures) }
  // The DMARC result comes first: later results quote the sender, who could imitate it.
  const headerOf = (dmarc: string) => Results.field(arrival.host, [dmarc, ...signed.chain, ...signed.info, sender.row])
  if (writer === undefined) {
    // A message with no author or several cannot be authenticated, so the verdict is `failed` rather than `unverified`.
    return {
      origin: { verdict: "failed", ...results, dmarc: "none", domain: null },
      header: headerOf("dmarc=none"),
    }
  }
  const found = Signatures.repeats(root.rows) ? noEvidence : evidence(writer, sender, signed.signatures)
  const evaluate = () => dmarcOf(writer.domain, found, lookup)
  const {
    result: dmarc,
    row,
    signedBy,
  } = await (recent === undefined ? evaluate() : recent.evaluate(["dmarc", writer.domain, found.domains], evaluate))
  const verdict = verdictOf(dmarc, found)
  const claim = verdict === "verified" ? claimOf(raw, root, signed.signatures, signedBy) : undefined
  return {
    origin: { verdict, ...results, dmarc, domain: writer.domain },
    header: headerOf(row),
    ...(claim === undefined ? {} : { claim }),
  }
}
