/** Role `mail`: incoming mail by SMTP, and IMAP and submission for mail programs. */
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { Identities } from "@svc/cluster/actor/Identities"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import * as Composition from "@svc/mail-gateway/mail/composing/Composition"
import { ComposingThread } from "@svc/mail-gateway/mail/composing/ComposingThread"
import * as Imap from "@svc/mail-gateway/mail/Imap"
import { Logins } from "@svc/mail-gateway/mail/imap/server/Logins"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import * as Submission from "@svc/mail-gateway/mail/Submission"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Layer, Option } from "effect"
import type { Parts } from "../Parts.ts"
import { programTls, type Settings } from "../Settings.ts"
import * as Stores from "./Stores.ts"

export const layer = (settings: Settings, parts: Parts) =>
  Layer.merge(
    smtp(settings, parts),
    // IMAP and submission share the password throttle.
    Layer.merge(imap(settings, parts), submission(settings)).pipe(
      Layer.provide(Logins.layer({ mailDomain: settings.mailDomain })),
      Layer.provide(RefusedCredentials.layer),
      Layer.provide(Audit.layer({ addresses: settings.auditAddresses })),
      Layer.provide([CredentialLookup.layer, StandingCredentials.layer, StandingPasswords.layer]),
    ),
  )

const submission = (settings: Settings) =>
  Submission.layer({
    host: settings.host,
    port: settings.submissionPort,
    tlsPort: settings.submissionsPort,
    mailDomain: settings.mailDomain,
    messageBytes: settings.messageBytes,
    allowsPlain: settings.environment === "development",
    proxies: settings.proxyProtocolFrom,
    tls: Option.getOrUndefined(programTls(settings)),
  }).pipe(
    Layer.provide([
      Sending.layer.pipe(Layer.provide([Stores.layer, Identities.layer, Composition.layer])),
      OrgLimits.layer(settings.limits).pipe(Layer.provide(Orgs.layer)),
    ]),
  )

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
    tls: Option.getOrUndefined(programTls(settings)),
  }).pipe(Layer.provide([ComposingThread.layer, Drafts.layer, Identities.layer, parts.resolver]))

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
