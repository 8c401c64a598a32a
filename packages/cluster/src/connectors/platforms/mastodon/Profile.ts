/** What the server says of the account, and the disclosure on its profile: the flag `bot` and a line of its text. */
import { Effect, Schema } from "effect"
import type { Capability } from "@svc/domain/connectors/Connector"
import { boundedName } from "../ResponseBounds.ts"
import type { PlatformFailure } from "../Failure.ts"
import type { Disclosure, Session, AccountStatus } from "../Platform.ts"
import * as Answers from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"

/** A token that reads and writes does all of it. */
const capabilities: ReadonlyArray<Capability> = ["post", "reply", "thread", "notifications", "dm"]

/** `user@domain` of an account, also of the server's own, which it names without. */
export const nameOf = (acct: string, domain: string): string =>
  boundedName(acct.includes("@") ? acct : `${acct}@${domain}`)

export const standingOf = (account: Answers.Account, service: string, domain: string): AccountStatus => ({
  account: { name: nameOf(account.acct, domain), id: account.id, service },
  capabilities,
  disclosed: account.bot === true,
})

const read = (session: Session) =>
  Effect.flatMap(
    asAccount(session, ({ api }) => api.v1.accounts.verifyCredentials()),
    Answers.as(Answers.Account),
  )

export const look =
  (instances: Instances) =>
  (session: Session): Effect.Effect<AccountStatus, PlatformFailure> =>
    Effect.gen(function* () {
      const account = yield* read(session)
      const { domain } = yield* instances.limits(session.http, session.account.service)
      return standingOf(account, session.account.service, domain)
    })

/** What was changed: the flag, and the line that was added. */
const Changed = Schema.fromJsonString(Schema.Struct({ bot: Schema.Boolean, line: Schema.NullOr(Schema.String) }))
const readChanged = Schema.decodeUnknownEffect(Changed)
const writeChanged = Schema.encodeSync(Changed)

/** Only these two members are sent; the server keeps all others. */
const update = (session: Session, changes: { readonly bot?: boolean; readonly note?: string }) =>
  asAccount(session, ({ api }) => api.v1.accounts.updateCredentials(changes))

export const disclose =
  (line: string) =>
  (session: Session): Effect.Effect<Disclosure | undefined, PlatformFailure> =>
    Effect.gen(function* () {
      const account = yield* read(session)
      const text = account.source?.note ?? ""
      const flag = account.bot !== true
      const said = text.includes(line)
      if (!flag && said) return undefined
      const note = text.trimEnd() === "" ? line : `${text.trimEnd()}\n\n${line}`
      const added = yield* (said ? Effect.succeed(false) : Effect.as(update(session, { bot: true, note }), true)).pipe(
        // The profile's text has no room for it: the flag alone says it then.
        Effect.catchTag("PlatformRefused", () => Effect.succeed(false)),
      )
      if (!added) yield* update(session, { bot: true })
      return flag || added ? writeChanged({ bot: flag, line: added ? line : null }) : undefined
    })

export const undisclose = (session: Session, changed: Disclosure): Effect.Effect<void, PlatformFailure> =>
  Effect.gen(function* () {
    const { bot, line } = yield* Effect.orDie(readChanged(changed))
    const account = yield* read(session)
    const text = account.source?.note ?? ""
    const without = line === null || !text.includes(line) ? undefined : text.replace(line, "").trimEnd()
    const changes = {
      ...(bot && account.bot === true ? { bot: false } : {}),
      ...(without === undefined ? {} : { note: without }),
    }
    if (Object.keys(changes).length > 0) yield* update(session, changes)
  })
