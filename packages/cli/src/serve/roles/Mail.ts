/** Role `mail`: the SMTP gateway. */
import { Identities } from "@svc/cluster/identity/Identities"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Layer, Option } from "effect"
import type { Parts } from "../Serve.ts"
import type { Settings } from "../Settings.ts"

export const layer = (settings: Settings, parts: Parts) =>
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
