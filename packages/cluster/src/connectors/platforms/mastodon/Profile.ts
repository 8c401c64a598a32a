/** The account's profile, and its automation disclosure: the flag `bot` and a line in the profile text. */
import { Effect, Schema } from "effect"
import type { Capability } from "@svc/domain/connectors/Connector"
import { boundedName } from "../ResponseBounds.ts"
import type { PlatformFailure } from "../Failure.ts"
import type { Disclosure, Session, AccountStatus } from "../Platform.ts"
import * as Responses from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"

/** A token with the scopes `read write` has all capabilities. */
const capabilities: ReadonlyArray<Capability> = ["post", "reply", "thread", "notifications", "dm"]

/** Returns an account's name as `user@domain`. A server omits the domain for its own accounts. */
export const nameOf = (acct: string, domain: string): string =>
  boundedName(acct.includes("@") ? acct : `${acct}@${domain}`)

export const statusOf = (account: Responses.Account, service: string, domain: string): AccountStatus => ({
  account: { name: nameOf(account.acct, domain), id: account.id, service },
  capabilities,
  disclosed: account.bot === true,
})

const read = (session: Session) =>
  Effect.flatMap(
    asAccount(session, ({ api }) => api.v1.accounts.verifyCredentials()),
    Responses.as(Responses.Account),
  )

export const inspect =
  (instances: Instances) =>
  (session: Session): Effect.Effect<AccountStatus, PlatformFailure> =>
    Effect.gen(function* () {
      const account = yield* read(session)
      const { domain } = yield* instances.limits(session.http, session.account.service)
      return statusOf(account, session.account.service, domain)
    })

/** The changes of a disclosure: whether the flag was set, and the added line. */
const Changed = Schema.fromJsonString(Schema.Struct({ bot: Schema.Boolean, line: Schema.NullOr(Schema.String) }))
const readChanged = Schema.decodeUnknownEffect(Changed)
const writeChanged = Schema.encodeSync(Changed)

/** Updates the flag and the profile text. The server keeps all other members. */
const update = (session: Session, changes: { readonly bot?: boolean; readonly note?: string }) =>
  asAccount(session, ({ api }) => api.v1.accounts.updateCredentials(changes))

export const disclose =
  (line: string) =>
  (session: Session): Effect.Effect<Disclosure | undefined, PlatformFailure> =>
    Effect.gen(function* () {
      const account = yield* read(session)
      const text = account.source?.note ?? ""
      const flag = account.bot !== true
      const hasLine = text.includes(line)
      if (!flag && hasLine) return undefined
      const note = text.trimEnd() === "" ? line : `${text.trimEnd()}\n\n${line}`
      const added = yield* (
        hasLine ? Effect.succeed(false) : Effect.as(update(session, { bot: true, note }), true)
      ).pipe(
        // The line does not fit into the profile text, so only the flag is set.
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
