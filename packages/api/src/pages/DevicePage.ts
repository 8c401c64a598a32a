/** Confirming a device login on a plain page: sign in, see what asks for a key, approve or deny. */
import { Devices } from "@svc/cluster/account/Devices"
import { Effect, Schema } from "effect"
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
})

const say = (body: string, status = 200) => page({ title: "Confirm a device", body, status, unlisted: true })

const codeForm = `<h1>Confirm a device</h1><p>Type the code that the terminal shows.</p>
<form method="get" action="${path}"><label>Code<br><input name="user_code" required autocomplete="off" autocapitalize="characters" placeholder="WDJB-MJHT"></label>
<p><button>Continue</button></p></form>`
const unknown = say(`${codeForm}<p class="told" role="status">No device asks with this code.</p>`, 404)

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
          not_found: () => Effect.succeed(unknown),
          device_authorization_settled: ({ detail }) => Effect.succeed(say(`<h1>${escape(detail)}</h1>`, 409)),
          unavailable: () => Effect.succeed(say("<h1>Not just now</h1><p>Try again in a moment.</p>", 503)),
        }),
        Effect.catchCause(() => Effect.succeed(say(codeForm, 400))),
      ),
    )
  }),
)
