/**
 * The DNS records that the service needs: `svc dns` prints them, `svc doctor` checks them.
 */
import { createHash, createPublicKey } from "node:crypto"
import * as MailPolicyPage from "@svc/api/pages/MailPolicyPage"
import { Option, Redacted } from "effect"
import type { Settings } from "../serve/Settings.ts"

export type Kind = "A" | "AAAA" | "MX" | "TXT" | "SRV"

export interface Wanted {
  /** The name without a trailing dot. */
  readonly name: string
  readonly kind: Kind
  /** The value in zone file notation; undefined for an unknown address. */
  readonly value: string | undefined
  /** The purpose, shown to the person who publishes the record. */
  readonly why: string
  /** Whether a feature fails without the record; other records only improve trust. */
  readonly essential: boolean
  /** Returns whether a DNS answer is this record and not another one with the same name and type. */
  readonly is: (answer: string) => boolean
}

/** The public addresses of this deployment. */
export interface Reached {
  /** Addresses of the HTTP servers, the mail servers and the edges; they may be the same. */
  readonly addresses: ReadonlyArray<string>
}

const hostOf = (url: string) => new URL(url).hostname

const isV6 = (address: string) => address.includes(":")

/** Returns an address record for each address, or one without a value if no address is known. */
const addressesOf = (name: string, { addresses }: Reached, why: string): ReadonlyArray<Wanted> =>
  (addresses.length === 0 ? [undefined] : addresses).map((value) => ({
    name,
    kind: value !== undefined && isV6(value) ? "AAAA" : "A",
    value,
    why,
    essential: true,
    is: (answer) => value === undefined || answer.toLowerCase() === value.toLowerCase(),
  }))

const text = (
  name: string,
  value: string,
  why: string,
  essential: boolean,
  is: (answer: string) => boolean,
): Wanted => ({
  name,
  kind: "TXT",
  value: `"${value}"`,
  why,
  essential,
  is,
})

const service = (name: string, host: string, port: number, why: string): Wanted => ({
  name,
  kind: "SRV",
  value: `0 1 ${port} ${host}.`,
  why,
  essential: false,
  is: (answer) => answer === `0 1 ${port} ${host}.`,
})

/**
 * Services that mail programs look up (RFC 6186, RFC 8314), with their public ports, regardless of the ports on which
 * the service listens.
 */
export const mailPrograms = [
  { service: "_imaps", port: 993, what: "IMAP server discovery" },
  { service: "_submissions", port: 465, what: "submission server discovery" },
  { service: "_submission", port: 587, what: "submission server discovery with STARTTLS" },
] as const

/** Returns the id of a policy, which changes with its content (RFC 8461 section 3.1). */
export const policyId = (policy: string): string => createHash("sha256").update(policy).digest("hex").slice(0, 20)

/** Returns the record of the ARC key (RFC 6376 section 3.6.1, RFC 8463). */
export const keyRecord = (privateKey: string): string => {
  const key = createPublicKey(privateKey)
  const spki = key.export({ type: "spki", format: "der" })
  return key.asymmetricKeyType === "ed25519"
    ? `v=DKIM1; k=ed25519; p=${spki.subarray(-32).toString("base64")}`
    : `v=DKIM1; k=rsa; p=${spki.toString("base64")}`
}

export const tagOf = (record: string, tag: string): string | undefined =>
  new RegExp(`(?:^|;)\\s*${tag}\\s*=\\s*([^;]*)`, "i").exec(record)?.[1]?.replaceAll(/\s/g, "")

const web = (settings: Settings, reached: Reached): ReadonlyArray<Wanted> => {
  const hosts = new Set([hostOf(settings.baseUrl), hostOf(settings.profileBase)])
  return [...hosts].flatMap((host) => addressesOf(host, reached, "the API and its pages"))
}

const mail = (settings: Settings, reached: Reached): ReadonlyArray<Wanted> => {
  const { mailDomain: domain, mailServers: servers } = settings
  const programs = Option.getOrElse(settings.imapHost, () => domain)
  const policy = MailPolicyPage.policyOf({ mode: settings.mtaSts, servers })
  return [
    ...servers.map((server, at): Wanted => {
      const value = `${(at + 1) * 10} ${server}.`
      return {
        name: domain,
        kind: "MX",
        value,
        why: "the mail servers of the domain",
        essential: true,
        is: (answer) => answer.split(" ")[1] === `${server.toLowerCase()}.`,
      }
    }),
    ...servers.flatMap((server) =>
      addressesOf(server, reached, "the mail server; the address needs a PTR record with this name"),
    ),
    text(
      domain,
      "v=spf1 mx -all",
      "servers that may send for this domain: add what your relay requires",
      true,
      (answer) => /^v=spf1( |$)/i.test(answer),
    ),
    ...servers
      .filter((server) => server !== domain)
      .map((server) =>
        text(server, "v=spf1 a -all", "the mail server's own name, for bounces", false, (answer) =>
          /^v=spf1( |$)/i.test(answer),
        ),
      ),
    text(
      `_dmarc.${domain}`,
      `v=DMARC1; p=quarantine; rua=mailto:postmaster@${domain}`,
      "how receivers treat forged mail",
      true,
      (answer) => /^v=DMARC1\b/i.test(answer),
    ),
    ...(settings.mtaSts === "none"
      ? []
      : [
          text(
            `_mta-sts.${domain}`,
            `v=STSv1; id=${policyId(policy)}`,
            "announces the MTA-STS policy; the id changes with it",
            false,
            (answer) => /^v=STSv1\b/i.test(answer),
          ),
          ...addressesOf(`mta-sts.${domain}`, reached, "the MTA-STS policy, served over HTTPS"),
        ]),
    text(
      `_smtp._tls.${domain}`,
      `v=TLSRPTv1; rua=mailto:postmaster@${domain}`,
      "destination of TLS reports",
      false,
      (answer) => /^v=TLSRPTv1\b/i.test(answer),
    ),
    ...Option.match(settings.arcKey, {
      onNone: (): ReadonlyArray<Wanted> => [],
      onSome: (key) => {
        const record = keyRecord(Redacted.value(key))
        return [
          text(
            `${settings.arcSelector}._domainkey.${domain}`,
            record,
            "the ARC key for forwarded mail",
            true,
            (answer) => tagOf(answer, "p") === tagOf(record, "p"),
          ),
        ]
      },
    }),
    ...mailPrograms.map(({ service: name, port, what }) => service(`${name}._tcp.${domain}`, programs, port, what)),
    ...addressesOf(programs, reached, "the host for mail programs"),
    ...addressesOf(`autoconfig.${domain}`, reached, "the configuration of mail programs, served over HTTPS").map(
      (record) => ({ ...record, essential: false }),
    ),
  ]
}

const tunnels = ({ tunnelDomain }: Settings, reached: Reached): ReadonlyArray<Wanted> => [
  ...addressesOf(`*.${tunnelDomain}`, reached, "public tunnel hostnames, one for each Identity"),
  ...addressesOf(`connect.${tunnelDomain}`, reached, "the edge to which agents connect"),
]

/** Returns all records by surface. A host with several purposes, as a mail server that mail programs use, is listed once. */
export const wanted = (settings: Settings, reached: Reached): ReadonlyArray<Wanted> => {
  const all = new Map<string, Wanted>()
  for (const record of [...web(settings, reached), ...mail(settings, reached), ...tunnels(settings, reached)]) {
    const key = `${record.kind} ${record.name} ${record.value ?? ""}`
    if (!all.has(key)) all.set(key, record)
  }
  return [...all.values()]
}

/** Splits a value into TXT strings of at most 255 bytes (RFC 1035 section 3.3.14). */
const split = (value: string): string =>
  value
    .slice(1, -1)
    .match(/.{1,255}/g)!
    .map((part) => `"${part}"`)
    .join(" ")

/** Formats a line of a zone file; a record with an unknown value becomes a comment. */
export const lineOf = ({ name, kind, value }: Wanted): string =>
  value === undefined
    ? `; ${name}.  3600  IN  ${kind}  <its address>`
    : `${name}.  3600  IN  ${kind}  ${kind === "TXT" ? split(value) : value}`
