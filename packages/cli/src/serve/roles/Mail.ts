/** Role `mail`: the SMTP gateway. */
import { Identities } from "@svc/cluster/identity/Identities"
import { Reception } from "@svc/mail-gateway/mail/Reception"
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
    tls: Option.getOrUndefined(settings.smtpTls),
  }).pipe(
    Layer.provide(
      Layer.mergeAll(
        Reception.layer({ mailboxBytes: settings.mailboxBytes }),
        SystemMail.layer,
        Transactions.layer,
        parts.resolver,
      ),
    ),
    Layer.provide(Identities.layer),
  )
