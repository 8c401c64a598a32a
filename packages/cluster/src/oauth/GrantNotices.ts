/**
 * Mails account holders when a Grant is created or ends. The notice is a row in the commit of that change, so none is
 * lost if a process or a relay fails.
 */
import { Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { Effect, Result, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { SystemMailer } from "../mail/SystemMailer.ts"
import { Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { grantLetter, type NoticeKind } from "./GrantLetters.ts"

interface Waiting {
  readonly id: string
  readonly kind: NoticeKind
  readonly client_name: string
  readonly redirect_host: string
  readonly email: string
  readonly language: Language
}

const batch = 50

/** Sends the notices. One that the relay rejects is retried in the next round and does not delay others. */
export const send = Effect.gen(function* () {
  const sql = yield* Unhurried
  const mailer = yield* SystemMailer
  const { baseUrl } = yield* Addresses
  const waiting = yield* sql<Waiting>`
    select n.id, n.kind, n.client_name, n.redirect_host, o.email, o.language
    from grant_notice n join org o on o.id = n.org_id where o.status = 'active' order by n.created_at, n.id limit ${batch}`
  for (const { id, kind, client_name, redirect_host, email, language } of waiting) {
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
