/** Role `mail`: mail in by SMTP, and Mailboxes for mail programs by IMAP. */
import { Audit } from "@svc/cluster/audit/Audit"
import { Strangers } from "@svc/cluster/audit/Strangers"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { Identities } from "@svc/cluster/identity/Identities"
import * as Imap from "@svc/mail-gateway/mail/Imap"
import { Logins } from "@svc/mail-gateway/mail/imap/server/Logins"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Layer, Option } from "effect"
import type { Parts } from "../Serve.ts"
import type { Settings } from "../Settings.ts"

export const layer = (settings: Settings, parts: Parts) => Layer.merge(smtp(settings, parts), imap(settings, parts))

const imap = (settings: Settings, parts: Parts) =>
  Imap.layer({
    host: settings.host,
    port: settings.imapPort,
    tlsPort: settings.imapsPort,
    mailDomain: settings.mailDomain,
    messageBytes: settings.messageBytes,
    mailboxBytes: settings.mailboxBytes,
    sessions: settings.imapSessions,
    allowsPlain: settings.environment === "development",
    proxies: settings.proxyProtocolFrom,
    tls: Option.getOrUndefined(Option.orElse(settings.imapTls, () => settings.smtpTls)),
  }).pipe(
    Layer.provide(Logins.layer({ mailDomain: settings.mailDomain })),
    Layer.provide(Strangers.layer),
    Layer.provide(Audit.layer({ addresses: settings.auditAddresses })),
    Layer.provide([
      CredentialLookup.layer,
      StandingCredentials.layer,
      StandingPasswords.layer,
      Identities.layer,
      parts.resolver,
    ]),
  )

const smtp = (settings: Settings, parts: Parts) =>
  Smtp.layer({
    host: settings.host,
    port: settings.smtpPort,
    mailDomain: settings.mailDomain,
    maxBytes: settings.messageBytes,
    proxies: settings.proxyProtocolFrom,
    tls: Option.getOrUndefined(settings.smtpTls),
  }).pipe(
    Layer.provide(
      Layer.mergeAll(
        Bounces.layer,
        Reception.layer({ mailboxBytes: settings.mailboxBytes }),
        Screening.layer({ blockLists: settings.blockLists, greylisting: settings.greylisting }),
        SystemMail.layer,
        Transactions.layer,
      ).pipe(Layer.provideMerge(parts.resolver)),
    ),
    Layer.provide(Identities.layer),
  )
