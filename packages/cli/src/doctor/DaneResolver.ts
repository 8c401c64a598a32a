/**
 * Checks the name server of `SVC_DANE_RESOLVER`. DANE trusts its validation, so the check queries a signed name and a
 * name with invalid signatures.
 */
import type { LookupFailed } from "@svc/mail-gateway/mail/Resolver"
import * as ValidatingResolver from "@svc/mail-gateway/mail/sending/dane/ValidatingResolver"
import { Effect, Option, Result } from "effect"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("mail")
const name = "dane resolver"

/** Public names for tests of resolvers; the signatures of the second are invalid on purpose. */
export const known = { signed: "iana.org", bogus: "dnssec-failed.org" }

const remedy = "Set SVC_DANE_RESOLVER to a name server on this machine that validates DNSSEC, such as Unbound."

/** Describes a server that is unreachable or could not answer. */
const silence = ({ code }: LookupFailed) =>
  code === "ETIMEOUT"
    ? "did not answer in time"
    : code === "ESERVFAIL"
      ? "failed (SERVFAIL)"
      : `cannot be queried (${code})`

const judge = Effect.fnUntraced(function* (server: ValidatingResolver.ServerAddress, { signed, bogus }: typeof known) {
  const ask = yield* ValidatingResolver.make(server)
  const at = `${server.host}:${server.port}`
  const good = yield* Effect.result(ask(signed, "A"))
  if (Result.isFailure(good)) {
    return found(
      name,
      "fail",
      `${at} ${silence(good.failure)} when asked for ${signed}: mail to other domains waits`,
      "Start that name server, let it reach the root servers, or correct SVC_DANE_RESOLVER.",
    )
  }
  if (!good.success.isSecure) {
    return found(
      name,
      "fail",
      `${at} answers for the signed name ${signed} without confirming its signatures (AD): TLSA records are not enforced`,
      remedy,
    )
  }
  const bad = yield* Effect.result(ask(bogus, "A"))
  if (Result.isSuccess(bad) && bad.success.exists) {
    return found(
      name,
      "fail",
      `${at} answers for ${bogus}, whose signatures are invalid: anyone who alters DNS could replace certificates`,
      remedy,
    )
  }
  return Result.isFailure(bad) && bad.failure.code !== "ESERVFAIL"
    ? found(name, "warn", `${at} vouches for ${signed}, and ${silence(bad.failure)}, asked for ${bogus}`, "Look again.")
    : found(name, "ok", `${at} validates ${signed} and rejects ${bogus}, whose signatures are invalid`)
})

/** Returns no findings if no name server is set. */
export const findings = Effect.fnUntraced(function* (
  { daneResolver, mailDirect, relay }: Pick<Settings, "daneResolver" | "mailDirect" | "relay">,
  names: typeof known = known,
) {
  if (Option.isNone(daneResolver)) return []
  // A relay takes precedence and does its own validation.
  if (!mailDirect || Option.isSome(relay)) {
    const text = "SVC_DANE_RESOLVER is set but unused, because no mail is delivered directly"
    return [found(name, "warn", text, "Set SVC_MAIL_DIRECT without SVC_SMTP_RELAY_URL, or remove the setting.")]
  }
  return [yield* judge(daneResolver.value, names)]
})
