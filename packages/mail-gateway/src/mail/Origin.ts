/**
 * Whether the domain of `From` really sent a message: SPF, DKIM and DMARC judged over the bytes as received
 * (RFC 7208, RFC 6376, RFC 7489), and what follows from them (decisions.md "Resources", mail.md "Origin verdict").
 *
 * `verified` says: a domain that belongs to the organisation of the one address shown has authenticated exactly what is
 * shown. Domains belong together by the Public Suffix List, whatever the DNS of either says.
 */
import type { OriginVerdict } from "@svc/domain/mail/Message"
import { evaluateDmarc } from "mailauth/lib/dmarc/index.js"
import { spf } from "mailauth/lib/spf/index.js"
import { formatAuthHeaderRow } from "mailauth/lib/tools.js"
import { aligned, author, type Author } from "./Author.ts"
import type { RecentVerdicts } from "./judging/RecentVerdicts.ts"
import * as Results from "./judging/Results.ts"
import * as Signatures from "./judging/Signatures.ts"
import { header } from "./mime/Header.ts"
import type { Part } from "./mime/Part.ts"

/** The SMTP session a message arrived by. */
export interface Arrival {
  readonly ip: string
  readonly helo: string
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string
  /** Our own host name, which signs the `Authentication-Results`. */
  readonly host: string
  /** It came by no SMTP session: it is read and not judged. */
  readonly isOnlyRead?: boolean
  /** It came to a bounce address: what it reports is wanted, not who sent it. */
  readonly isBounce?: boolean
}

export interface Verdict {
  readonly origin: OriginVerdict
  /** The `Authentication-Results` field to put on top, without its line break; null when nothing could be judged. */
  readonly header: string | null
}

/** What is said of a message that could not be judged. */
export const unjudged: Verdict = {
  origin: { verdict: "error", spf: "none", dkim: "none", dmarc: "none", domain: null },
  header: null,
}

/** What of RFC 8601's result words a list of signatures comes to: one that passes outweighs the rest. */
const dkimWord = (signatures: ReadonlyArray<Signatures.Signature>): string => {
  const words = signatures.map(({ result }) => result)
  return (
    words.find((one) => one === "pass") ??
    words.find((one) => one === "temperror") ??
    words.find((one) => one !== "none") ??
    "none"
  )
}

/** What speaks for the author: each of these alone proves where the message is from. */
interface Evidence {
  readonly domains: { readonly spf: ReadonlyArray<string>; readonly dkim: ReadonlyArray<string> }
  /** DNS did not answer where the answer could have proved it. */
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

/** Nobody can vouch for a message that says two things at once. */
const nothing: Evidence = { domains: { spf: [], dkim: [] }, inDoubt: false }

const verdictOf = (dmarc: string, { domains, inDoubt }: Evidence): OriginVerdict["verdict"] => {
  if (dmarc === "pass") return "verified"
  if (dmarc === "none" && domains.spf.length + domains.dkim.length > 0) return "verified"
  if (inDoubt || dmarc === "temperror") return "error"
  return dmarc === "none" ? "unverified" : "failed"
}

/** What SPF says of the sender of the session. */
const spfOf = async (arrival: Arrival, lookup: Signatures.Lookup) => {
  const { ip, helo, mailFrom, host } = arrival
  const { domain, status } = await spf({ ip, helo, sender: mailFrom, mta: host, resolver: lookup })
  const result = status.result === "temperr" ? "temperror" : status.result
  return { domain, result, row: formatAuthHeaderRow("spf", status) }
}

/**
 * What DMARC says of an author's domain ({@link Author}, since the library takes letters for others that DNS takes for the
 * same) where these domains speak for it.
 */
const dmarcOf = async (author: string, { domains }: Evidence, lookup: Signatures.Lookup) => {
  const { response } = await evaluateDmarc({
    headerFrom: [author],
    spfDomains: [...domains.spf],
    dkimDomains: domains.dkim.map((domain) => ({ id: domain, domain, aligned: false })),
    resolver: lookup,
  })
  return response === false
    ? { result: "permerror", row: "dmarc=permerror" }
    : { result: response.status.result, row: formatAuthHeaderRow("dmarc", response.status) }
}

/** `recent` has what was said a moment ago of the same sender. */
export const judge = async (
  raw: Buffer,
  root: Part,
  arrival: Arrival,
  lookup: Signatures.Lookup,
  recent?: RecentVerdicts,
): Promise<Verdict> => {
  const writer =
    root.rows.filter(({ key }) => key === "from").length === 1 ? author(header(raw, root.rows, "from")) : undefined
  const sending = () => spfOf(arrival, lookup)
  const [signed, sender] = await Promise.all([
    Signatures.verify(raw, root, lookup),
    recent === undefined ? sending() : recent.said(["spf", arrival.ip, arrival.helo, arrival.mailFrom], sending),
  ])
  const words = { spf: sender.result, dkim: dkimWord(signed.signatures) }
  // What readers look for first stands first: those behind it quote the sender, who may have written what looks like it.
  const results = (dmarc: string) => Results.field(arrival.host, [dmarc, ...signed.chain, ...signed.info, sender.row])
  if (writer === undefined) {
    // No author, or several: nobody can vouch for that, so it is never merely unknown.
    return {
      origin: { verdict: "failed", ...words, dmarc: "none", domain: null },
      header: results("dmarc=none"),
    }
  }
  const found = Signatures.repeats(root.rows) ? nothing : evidence(writer, sender, signed.signatures)
  const asking = () => dmarcOf(writer.domain, found, lookup)
  const { result: dmarc, row } = await (recent === undefined
    ? asking()
    : recent.said(["dmarc", writer.domain, found.domains], asking))
  return {
    origin: { verdict: verdictOf(dmarc, found), ...words, dmarc, domain: writer.domain },
    header: results(row),
  }
}
