/** Confirming a device login on a plain page: sign in, see what asks for a key, approve or deny. */
import { Addresses } from "@svc/domain/Addresses"
import { EmailAddress } from "@svc/domain/account/Account"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Devices } from "@svc/cluster/account/Devices"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as MagicLinks from "../account/MagicLinks.ts"
import { limited } from "../limits/PublicLimit.ts"
import { RequestId } from "../RequestId.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"

const path = "/auth/device"
const Code = Schema.Struct({ user_code: Schema.String.check(Schema.isMaxLength(100)) })
const Decision = Schema.Struct({ ...Code.fields, decision: Schema.Literals(["approve", "deny"]) })
const SignIn = Schema.Struct({ email: EmailAddress, terms: Schema.optionalKey(Schema.String) })

const title = "Confirm a device"
const say = (body: string, status = 200) => page({ title, body, status })

const signInForm = `<h1>Sign in to confirm a device</h1>
<form method="post" action="/auth/sign-in">
<label>Your email address<br><input name="email" type="email" required autocomplete="email"></label>
<p><label><input type="checkbox" name="terms" value="yes"> I accept the Terms of Service (needed the first time)</label></p>
<button>Mail me a link</button></form>`

const codeForm = `<h1>Confirm a device</h1><p>Type the code that the terminal shows.</p>
<form method="get" action="${path}"><label>Code<br><input name="user_code" required autocomplete="off" autocapitalize="characters" placeholder="WDJB-MJHT"></label>
<p><button>Continue</button></p></form>`

const decisionForm = (
  device: { readonly user_code: string; readonly name: string; readonly client: string | null },
  email: string,
) =>
  `<h1>Give this device an Admin Key?</h1>
<dl><dt>Code</dt><dd><code>${device.user_code}</code></dd><dt>Key name</dt><dd>${escape(device.name)}</dd>
<dt>Asked by</dt><dd>${escape(device.client ?? "not said")}</dd><dt>Account</dt><dd>${escape(email)}</dd></dl>
<p>Approve only if the code is the one your own terminal shows.</p>
<form method="post" action="${path}"><input type="hidden" name="user_code" value="${device.user_code}">
<button name="decision" value="approve">Approve</button> <button name="decision" value="deny" class="quiet">Deny</button></form>`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const devices = yield* Devices
    const request = yield* MagicLinks.make
    const limits = yield* PublicLimits
    yield* Accounts
    yield* Addresses

    yield* router.add(
      "GET",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        if (caller === undefined) return say(signInForm)
        const asked = yield* Effect.option(HttpServerRequest.schemaSearchParams(Code))
        if (asked._tag === "None") return say(codeForm)
        const found = yield* Effect.option(devices.view(asked.value.user_code))
        if (found._tag === "None") return say(`${codeForm}<p>No device asks with this code.</p>`, 404)
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
        if (caller === undefined || !(yield* fromOurPages)) return say(signInForm, 403)
        const { user_code, decision } = yield* HttpServerRequest.schemaBodyUrlParams(Decision)
        yield* decision === "approve"
          ? devices.approve(caller.org.id, user_code, {
              kind: caller.kind,
              credentialId: caller.credentialId,
              requestId: yield* RequestId,
            })
          : devices.deny(user_code)
        return decision === "approve"
          ? say("<h1>Approved</h1><p>The terminal has its key in a moment. You can close this page.</p>")
          : say("<h1>Denied</h1><p>No key was made. You can close this page.</p>")
      }).pipe(
        Effect.catchTags({
          not_found: () => Effect.succeed(say(`${codeForm}<p>No device asks with this code.</p>`, 404)),
          device_authorization_settled: ({ detail }) => Effect.succeed(say(`<h1>${escape(detail)}</h1>`, 409)),
          unavailable: () => Effect.succeed(say("<h1>Not just now</h1><p>Try again in a moment.</p>", 503)),
        }),
        Effect.catchCause(() => Effect.succeed(say(codeForm, 400))),
      ),
    )

    yield* router.add(
      "POST",
      "/auth/sign-in",
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        yield* limited(limits, "magic_link")
        const { email, terms } = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
        const sent = yield* request({ email, tos_accepted: terms === "yes" }, headers["accept-language"])
        const link =
          sent.dev_magic_link === null
            ? ""
            : `<p>Development: <a href="${escape(sent.dev_magic_link)}">open the link</a>.</p>`
        return say(
          `<h1>Look into your mail</h1><p>A link is on its way to ${escape(email)}. Open it, then come back to this page.</p>${link}`,
        )
      }).pipe(
        Effect.catchTags({
          tos_not_accepted: () =>
            Effect.succeed(say(`${signInForm}<p>The first time, the Terms must be accepted.</p>`, 422)),
          invite_required: () => Effect.succeed(say("<h1>Sign-up needs an invitation</h1>", 403)),
          rate_limited: () => Effect.succeed(say("<h1>Too many links were asked for</h1><p>Wait a while.</p>", 429)),
          unavailable: () => Effect.succeed(say("<h1>Not just now</h1><p>Try again in a moment.</p>", 503)),
        }),
        Effect.catchCause(() => Effect.succeed(say(signInForm, 400))),
      ),
    )
  }),
)
