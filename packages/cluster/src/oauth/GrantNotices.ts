/**
 * Tells account holders by mail what happened to their Grants. The notice is a row of the commit that made the Grant or
 * ended it, so none is lost with a process or a relay.
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

/** What the relay does not take is tried again in the next round, and keeps nothing that came after it. */
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

/** One process of the cluster does it, so that nothing goes out twice. */
export const layer = Singleton.make(
  "GrantNotices",
  send.pipe(
    Effect.catchCause((cause) => Effect.logWarning("A notice about a Grant was not sent", cause)),
    Effect.repeat(Schedule.spaced(Timing.grantNotices)),
    Effect.asVoid,
  ),
)
