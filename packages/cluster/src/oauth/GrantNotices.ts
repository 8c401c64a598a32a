/**
 * Mails account holders when a Grant is created or ends. The notice is a row in the commit of that change, so none is
 * lost if a process or a relay fails.
 */
import { Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { Clock, Effect, Result, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { postponed } from "../mail/LetterRetry.ts"
import { type Letter, SystemMailer } from "../mail/SystemMailer.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

type NoticeKind = "created" | "refresh_reuse"

interface Words {
  readonly subject: string
  readonly body: (name: string, host: string) => string
  readonly hint: string
}

const words: { readonly [L in Language]: { readonly [K in NoticeKind]: Words } } = {
  en: {
    created: {
      subject: "An app was connected to your agents",
      body: (name, host) => `An app named "${name}" was connected to your account. Access was granted to: ${host}`,
      hint: "If you did not do this, revoke its access here:",
    },
    refresh_reuse: {
      subject: "An app was disconnected as a precaution",
      body: (name, host) =>
        `The app named "${name}" (${host}) presented a token that had already been used. Someone else may have a copy of it, so we revoked the app's access.`,
      hint: "If you use this app, connect it again. You can review all connected apps here:",
    },
  },
  de: {
    created: {
      subject: "Eine App wurde mit deinen Agenten verbunden",
      body: (name, host) => `Die App „${name}“ wurde mit deinem Konto verbunden. Der Zugriff wurde erteilt an: ${host}`,
      hint: "Wenn du das nicht warst, widerrufe den Zugriff hier:",
    },
    refresh_reuse: {
      subject: "Eine App wurde vorsorglich getrennt",
      body: (name, host) =>
        `Die App „${name}“ (${host}) hat ein bereits verwendetes Token vorgelegt. Möglicherweise besitzt jemand anderes eine Kopie davon. Deshalb haben wir den Zugriff der App widerrufen.`,
      hint: "Wenn du die App nutzt, verbinde sie erneut. Alle verbundenen Apps findest du hier:",
    },
  },
  fr: {
    created: {
      subject: "Une application a été connectée à vos agents",
      body: (name, host) => `L'application « ${name} » a été connectée à votre compte. Accès accordé à : ${host}`,
      hint: "Si ce n'était pas vous, révoquez son accès ici :",
    },
    refresh_reuse: {
      subject: "Une application a été déconnectée par précaution",
      body: (name, host) =>
        `L'application « ${name} » (${host}) a présenté un jeton déjà utilisé. Quelqu'un d'autre en possède peut-être une copie ; nous avons donc révoqué l'accès de l'application.`,
      hint: "Si vous utilisez cette application, reconnectez-la. Vous trouverez toutes les applications connectées ici :",
    },
  },
}

const grantLetter = (options: {
  readonly kind: NoticeKind
  readonly to: string
  readonly language: Language
  /** The client's own name: one line, at most 60 characters. */
  readonly name: string
  readonly host: string
  readonly keysUrl: string
}): Letter => {
  const texts = words[options.language][options.kind]
  return {
    to: options.to,
    subject: texts.subject,
    text: `${texts.body(options.name, options.host)}\n\n${texts.hint}\n\n${options.keysUrl}\n`,
  }
}

interface Waiting {
  readonly id: string
  readonly kind: NoticeKind
  readonly client_name: string
  readonly redirect_host: string
  readonly email: string
  readonly language: Language
}

/** Sends all due notices. */
export const send = Effect.gen(function* () {
  const sql = yield* Unhurried
  const mailer = yield* SystemMailer
  const { baseUrl } = yield* Addresses
  const now = new Date(yield* Clock.currentTimeMillis)
  const claim = sql<Waiting>`
    update grant_notice n set ${postponed(sql, now)} from org o
    where o.id = n.org_id and n.id = (
      select due.id from grant_notice due join org on org.id = due.org_id
      where org.status = 'active' and due.next_attempt_at <= ${now}::timestamptz
      order by due.next_attempt_at, due.created_at, due.id limit 1
    )
    returning n.id, n.kind, n.client_name, n.redirect_host, o.email, o.language`
  for (let [due] = yield* claim; due !== undefined; [due] = yield* claim) {
    const { id, kind, client_name, redirect_host, email, language } = due
    const letter = grantLetter({
      kind,
      to: email,
      language,
      name: client_name,
      host: redirect_host,
      keysUrl: `${baseUrl}/console/keys`,
    })
    const taken = yield* Effect.result(mailer.send(letter))
    if (Result.isSuccess(taken)) yield* sql`delete from grant_notice where id = ${id}`
  }
})

/** Runs in one process of the cluster, so that no mail is sent twice. */
export const layer = Singleton.make(
  "GrantNotices",
  send.pipe(
    Effect.catchCause((cause) => Effect.logWarning("A notice about a Grant was not sent", cause)),
    Effect.repeat(Schedule.spaced(Timing.grantNotices)),
    Effect.asVoid,
  ),
)
