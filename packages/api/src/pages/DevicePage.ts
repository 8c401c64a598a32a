/** Confirming a device login on a plain page: sign in, see what asks for a key, approve or deny. */
import type { DeviceView } from "@svc/domain/account/Device"
import { judgeRights } from "@svc/domain/account/KeyRights"
import { everything } from "@svc/domain/account/Scope"
import { isScope, scopeNames } from "@svc/domain/ScopeTable"
import { Devices } from "@svc/cluster/account/Devices"
import { Clock, Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { RequestId } from "../RequestId.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"
import { readCode, signInForm } from "./SignInPage.ts"

const path = "/auth/device"
const Asked = Schema.Struct({ user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))) })
const Decision = Schema.Struct({
  user_code: Schema.String.check(Schema.isMaxLength(100)),
  decision: Schema.Literals(["approve", "deny"]),
  scope: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  days: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{0,3}$/))),
})

const say = (body: string, status = 200) => page({ title: "Confirm a device", body, status })

const codeForm = `<h1>Confirm a device</h1><p>Type the code that the terminal shows.</p>
<form method="get" action="${path}"><label>Code<br><input name="user_code" required autocomplete="off" autocapitalize="characters" placeholder="WDJB-MJHT"></label>
<p><button>Continue</button></p></form>`
const readOnly = scopeNames.filter((name) => name.endsWith(":read"))
const nothingChosen = "<h1>It may do nothing</h1><p>Go back and leave it something, or deny it.</p>"
const unknown = say(`${codeForm}<p class="told" role="status">No device asks with this code.</p>`, 404)

type Asking = Pick<DeviceView, "user_code" | "name" | "client" | "scopes" | "expires_in_days">

/** What the key may do: each scope that was asked for can be taken away; of all, all but reading. */
const scopeChoice = ({ scopes }: Asking) =>
  scopes.includes(everything)
    ? `<p><label>It may<br><select name="scope"><option value="*" selected>do everything an Admin Key may</option>
<option value="${readOnly.join(" ")}">read only, and no secret values</option></select></label></p>`
    : `<fieldset><legend>It may</legend>${scopes
        .map(
          (scope) =>
            `<p><label><input type="checkbox" name="scope" value="${escape(scope)}" checked> <code>${escape(scope)}</code></label></p>`,
        )
        .join("")}</fieldset>`

/** No longer than was asked for. */
const endChoice = ({ expires_in_days }: Asking) => {
  const shorter = [365, 90, 30, 7, 1].filter((days) => expires_in_days === null || days < expires_in_days)
  const option = (days: number) => `<option value="${days}">${days === 1 ? "1 day" : `${days} days`}</option>`
  const asked = expires_in_days === null ? `<option value="">it is revoked</option>` : option(expires_in_days)
  return `<p><label>Until<br><select name="days">${asked}${shorter.map(option).join("")}</select></label></p>`
}

const decisionForm = (device: Asking, email: string) =>
  `<h1>Give this device an Admin Key?</h1>
<dl><dt>Code</dt><dd><code>${device.user_code}</code></dd><dt>Key name</dt><dd>${escape(device.name)}</dd>
<dt>Asked by</dt><dd>${escape(device.client ?? "not said")}</dd><dt>Account</dt><dd>${escape(email)}</dd></dl>
<p>Approve only if the code is the one your own terminal shows.</p>
<form method="post" action="${path}"><input type="hidden" name="user_code" value="${device.user_code}">
${scopeChoice(device)}${endChoice(device)}
<button name="decision" value="approve">Approve</button> <button name="decision" value="deny" class="quiet">Deny</button></form>`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const devices = yield* Devices

    yield* router.add(
      "GET",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const asked = yield* Effect.option(HttpServerRequest.schemaSearchParams(Asked))
        const text = asked._tag === "Some" ? asked.value.user_code : undefined
        const userCode = readCode(text)
        if (caller === undefined) return say(signInForm({ userCode }))
        if (text === undefined) return say(codeForm)
        if (userCode === undefined) return unknown
        const found = yield* Effect.option(devices.view(userCode))
        if (found._tag === "None") return unknown
        return found.value.status === "pending"
          ? say(decisionForm(found.value, caller.org.email))
          : say(`<h1>This login is ${found.value.status}</h1><p>Start a new one in the terminal.</p>`)
      }),
    )

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        if (caller === undefined || !(yield* fromOurPages)) return say(signInForm({}), 403)
        const { user_code, decision, scope = [], days = "" } = yield* HttpServerRequest.schemaBodyUrlParams(Decision)
        const scopes = [scope].flat().flatMap((one) => one.split(" "))
        if (decision === "approve" && scopes.length === 0) return say(nothingChosen, 400)
        const now = yield* Clock.currentTimeMillis
        yield* decision === "approve"
          ? devices.approve(
              caller.org.id,
              user_code,
              { scopes, ...(days === "" ? {} : { expires_in_days: Number(days) }) },
              (asked) => judgeRights(caller, asked, isScope, now),
              { kind: caller.kind, credentialId: caller.credentialId, requestId: yield* RequestId },
            )
          : devices.deny(user_code)
        return decision === "approve"
          ? say("<h1>Approved</h1><p>The terminal has its key in a moment. You can close this page.</p>")
          : say("<h1>Denied</h1><p>No key was made. You can close this page.</p>")
      }).pipe(
        Effect.catchTags({
          not_found: () => Effect.succeed(unknown),
          scope_exceeds: ({ detail }) => Effect.succeed(say(`<h1>${escape(detail)}</h1>`, 403)),
          key_quota_exhausted: ({ detail }) => Effect.succeed(say(`<h1>${escape(detail)}</h1>`, 409)),
          device_authorization_settled: ({ detail }) => Effect.succeed(say(`<h1>${escape(detail)}</h1>`, 409)),
          unavailable: () => Effect.succeed(say("<h1>Not just now</h1><p>Try again in a moment.</p>", 503)),
        }),
        Effect.catchCause(() => Effect.succeed(say(codeForm, 400))),
      ),
    )
  }),
)
