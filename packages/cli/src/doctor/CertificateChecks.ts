/** Checks certificates from files and settings: readable, valid for the names, complete, and not about to expire. */
import { X509Certificate } from "node:crypto"
import { rootCertificates } from "node:tls"
import * as Certificates from "@svc/cluster/net/Certificates"
import { Effect, Option } from "effect"
import { programTls, type Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("certificates")

const day = 24 * 3600 * 1000
const soon = 14

const split = (pem: string) => pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []

/** Subjects of the root certificates that clients trust. */
const roots = () => new Set(rootCertificates.map((pem) => new X509Certificate(pem).subject))

/** Returns what is wrong with a certificate for these names, or undefined. */
export const faultOf = (
  pem: Certificates.Pem,
  names: ReadonlyArray<string>,
  now: number,
  isPublic: boolean,
): { readonly status: Finding.Status; readonly detail: string; readonly remedy: string } | undefined => {
  const chain = split(pem.cert).map((one) => new X509Certificate(one))
  const leaf = chain[0]!
  const left = Math.floor((Date.parse(leaf.validTo) - now) / day)
  if (left < 0)
    return {
      status: "fail",
      detail: `ended on ${leaf.validTo}`,
      remedy: "Renew it; the service reloads the file automatically.",
    }
  const missing = names.filter((name) => leaf.checkHost(name.replace(/^\*/, "any")) === undefined)
  if (missing.length > 0) {
    return {
      status: "fail",
      detail: `does not name ${missing.join(", ")}`,
      remedy: `Request one for ${names.join(", ")}.`,
    }
  }
  if (left < soon) {
    return {
      status: "warn",
      detail: `ends in ${left} days (${leaf.validTo})`,
      remedy: "Check that the ACME client runs and writes this file.",
    }
  }
  const last = chain.at(-1)!
  const isWhole = chain.slice(1).every((issuer, at) => chain[at]!.issuer === issuer.subject)
  if (isPublic && (!isWhole || !roots().has(last.issuer))) {
    return {
      status: "warn",
      detail: "is not issued by an authority that clients trust",
      remedy: "Put the certificate with its chain into the file (fullchain.pem), the certificate first.",
    }
  }
  return undefined
}

const judge = (what: string, given: Option.Option<Certificates.Pem>, names: ReadonlyArray<string>, isPublic: boolean) =>
  Option.match(given, {
    onNone: () => Effect.succeed([]),
    onSome: (pem) =>
      Certificates.read(pem, what).pipe(
        Effect.map((read) => {
          const fault = faultOf(read, names, Date.now(), isPublic)
          return fault === undefined
            ? [found(what, "ok", `until ${new X509Certificate(read.cert).validTo}`)]
            : [found(what, fault.status, fault.detail, fault.remedy)]
        }),
        Effect.catch((error) =>
          Effect.succeed([
            found(what, "fail", error.message, "Check that the files exist and that the service's user can read them."),
          ]),
        ),
      ),
  })

export const findings = (settings: Settings) => {
  const isPublic = settings.environment === "production"
  const none =
    isPublic && Option.isNone(settings.smtpTls)
      ? [
          found(
            "smtp",
            "warn",
            "is self-signed: senders that require TLS will not deliver",
            "Set SVC_SMTP_TLS_CERT and SVC_SMTP_TLS_KEY.",
          ),
        ]
      : []
  return Effect.map(
    Effect.all([
      judge("edge", settings.edgeTls, [`*.${settings.tunnelDomain}`], isPublic),
      judge("smtp", settings.smtpTls, settings.mailServers, isPublic),
      judge(
        "imap and submission",
        programTls(settings),
        [Option.getOrElse(settings.imapHost, () => settings.mailDomain)],
        isPublic,
      ),
      judge("runner", settings.runnerTls, [], false),
    ]),
    (all) => [...none, ...all.flat()],
  )
}
