/** Confirming a device login on a plain page: sign in, see what asks for a key, approve or deny. */
import type { Language } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { DeviceView } from "@svc/domain/account/Device"
import { judgeRights } from "@svc/domain/account/KeyRights"
import { everything } from "@svc/domain/account/Scope"
import { isScope, scopeNames } from "@svc/domain/ScopeTable"
import { Devices } from "@svc/cluster/account/Devices"
import { Audit } from "@svc/cluster/audit/Audit"
import { Clock, Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { pageOperation } from "../audit/PageOperations.ts"
import { RequestContext } from "../RequestContext.ts"
import { RequestId } from "../RequestId.ts"
import { type DeviceWords, words } from "./DeviceWords.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"
import { readCode, signInForm } from "./SignInPage.ts"
import { languageFor } from "./PageLanguage.ts"

const path = "/auth/device"
const Asked = Schema.Struct({ user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))) })
const Decision = Schema.Struct({
  user_code: Schema.String.check(Schema.isMaxLength(100)),
  decision: Schema.Literals(["approve", "deny"]),
  scope: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  days: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{0,3}$/))),
})

const say = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })
const told = (lang: Language, [title, text]: readonly [string, string], status = 200) =>
  say(lang, `<h1>${title}</h1><p>${text}</p>`, status)
/** What a problem says, in the English of the API. */
const refused = (lang: Language, { detail, status }: { readonly detail: string; readonly status: number }) =>
  say(lang, `<h1 lang="en">${escape(detail)}</h1>`, status)

const codeForm = ({ title, type, code, proceed }: DeviceWords) => `<h1>${title}</h1><p>${type}</p>
<form method="get" action="${path}"><label>${code}<br><input name="user_code" required autocomplete="off" autocapitalize="characters" placeholder="WDJB-MJHT"></label>
<p><button>${proceed}</button></p></form>`
const unknown = (lang: Language) =>
  say(lang, `${codeForm(words[lang])}<p class="told" role="status">${words[lang].unknown}</p>`, 404)

const readOnly = scopeNames.filter((name) => name.endsWith(":read"))

type Asking = Pick<DeviceView, "user_code" | "name" | "client" | "scopes" | "expires_in_days">

/** What the key may do: each scope that was asked for can be taken away; of all, all but reading. */
const scopeChoice = ({ scopes }: Asking, texts: DeviceWords) =>
  scopes.includes(everything)
    ? `<p><label>${texts.may}<br><select name="scope"><option value="*" selected>${texts.everything}</option>
<option value="${readOnly.join(" ")}">${texts.readOnly}</option></select></label></p>`
    : `<fieldset><legend>${texts.may}</legend>${scopes
        .map(
          (scope) =>
            `<p><label><input type="checkbox" name="scope" value="${escape(scope)}" checked> <code>${escape(scope)}</code></label></p>`,
        )
        .join("")}</fieldset>`

/** No longer than was asked for. */
const endChoice = ({ expires_in_days }: Asking, texts: DeviceWords) => {
  const shorter = [365, 90, 30, 7, 1].filter((days) => expires_in_days === null || days < expires_in_days)
  const option = (days: number) => `<option value="${days}">${texts.days(days)}</option>`
  const asked = expires_in_days === null ? `<option value="">${texts.revoked}</option>` : option(expires_in_days)
  return `<p><label>${texts.until}<br><select name="days">${asked}${shorter.map(option).join("")}</select></label></p>`
}

const decisionForm = (device: Asking, email: string, texts: DeviceWords) =>
  `<h1>${texts.ask}</h1>
<dl><dt>${texts.code}</dt><dd><code>${device.user_code}</code></dd><dt>${texts.keyName}</dt><dd>${escape(device.name)}</dd>
<dt>${texts.askedBy}</dt><dd>${escape(device.client ?? texts.notSaid)}</dd><dt>${texts.account}</dt><dd>${escape(email)}</dd></dl>
<p>${texts.care}</p>
<form method="post" action="${path}"><input type="hidden" name="user_code" value="${device.user_code}">
${scopeChoice(device, texts)}${endChoice(device, texts)}
<button name="decision" value="approve">${texts.approve}</button> <button name="decision" value="deny" class="quiet">${texts.deny}</button></form>`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const devices = yield* Devices
    const audit = yield* Audit

    yield* router.add(
      "GET",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        const texts = words[lang]
        const asked = yield* Effect.option(HttpServerRequest.schemaSearchParams(Asked))
        const text = asked._tag === "Some" ? asked.value.user_code : undefined
        const userCode = readCode(text)
        if (caller === undefined) return say(lang, signInForm(lang, { userCode }))
        if (text === undefined) return say(lang, codeForm(texts))
        if (userCode === undefined) return unknown(lang)
        const found = yield* Effect.option(devices.view(userCode))
        if (found._tag === "None") return unknown(lang)
        const { status } = found.value
        return status === "pending"
          ? say(lang, decisionForm(found.value, caller.org.email, texts))
          : told(lang, [texts.settled[status], texts.anew])
      }),
    )

    const decide = Effect.fnUntraced(function* (caller: CallerInfo | undefined, lang: Language) {
      if (caller === undefined || !(yield* fromOurPages)) return say(lang, signInForm(lang, {}), 403)
      const { user_code, decision, scope = [], days = "" } = yield* HttpServerRequest.schemaBodyUrlParams(Decision)
      const scopes = [scope].flat().flatMap((one) => one.split(" "))
      if (decision === "approve" && scopes.length === 0) return told(lang, words[lang].nothingChosen, 400)
      const now = yield* Clock.currentTimeMillis
      const action = `device_confirmation.${decision}`
      const exchange = yield* RequestContext
      const act = (of: "secret" | "auth") => pageOperation(caller, exchange, { class: of, action, type: "device" })
      // A key is made: it is on record that it is, or it is not.
      if (decision === "approve") yield* audit.secret(act("secret"))
      else yield* audit.record(act("auth"))
      yield* decision === "approve"
        ? devices.approve(
            caller.org.id,
            user_code,
            { scopes, ...(days === "" ? {} : { expires_in_days: Number(days) }) },
            (asked) => judgeRights(caller, asked, isScope, now),
            { kind: caller.kind, credentialId: caller.credentialId, requestId: yield* RequestId },
          )
        : devices.deny(user_code)
      return told(lang, decision === "approve" ? words[lang].approved : words[lang].denied)
    })

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        return yield* decide(caller, lang).pipe(
          Effect.catchTags({
            not_found: () => Effect.succeed(unknown(lang)),
            scope_exceeds: (problem) => Effect.succeed(refused(lang, problem)),
            key_quota_exhausted: (problem) => Effect.succeed(refused(lang, problem)),
            device_authorization_settled: (problem) => Effect.succeed(refused(lang, problem)),
            audit_unavailable: () => Effect.succeed(told(lang, words[lang].later, 503)),
            unavailable: () => Effect.succeed(told(lang, words[lang].later, 503)),
          }),
          Effect.catchCause(() => Effect.succeed(say(lang, codeForm(words[lang]), 400))),
        )
      }),
    )
  }),
)
