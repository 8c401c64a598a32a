/** The OAuth callback: completes the authorization and returns to the Identity. */
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { go, query } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Skeleton } from "../ui/Loaded.tsx"
import { Note, Page } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import { begunAs, forget } from "./PendingAuthorization.ts"
import { connectorsOf, reread } from "./Platforms.tsx"
import { say } from "./texts.ts"

const CallbackPage = () => {
  const [begun] = useState(() => begunAs(query.peek().get("state")))
  const said = query.value.get("error_description") ?? query.value.get("error")
  const finish = useCommand(async (key) => {
    if (begun === undefined) return
    const { account, platform } = await call(
      "POST /api/connectors/callback",
      { body: { callback: location.search, apply_disclosure: begun.apply_disclosure } },
      { key },
    )
    forget()
    await reread(begun.handle)
    tell(say("is_connected", { account }))
    go(`${connectorsOf(begun.handle)}/${platform}`, "replace")
  })
  useEffect(() => {
    // Started in another browser: the page without script asks for confirmation.
    if (begun === undefined) location.replace(`/auth/connectors/callback${location.search}`)
    else if (said === null) void finish.run()
    else forget()
  }, [])
  const failed = said !== null || finish.failure !== undefined
  return (
    <Page title={say(failed ? "not_connected" : "finishing")}>
      {begun === undefined || !failed ? <Skeleton /> : null}
      {begun === undefined || said === null ? null : (
        <Note tone="bad">
          <p>{say("declined")}</p>
          <p>
            <bdi>{said.slice(0, 300)}</bdi>
          </p>
        </Note>
      )}
      <ProblemNote failure={finish.failure} />
      {begun !== undefined && failed ? (
        <div class="bar">
          <ButtonLink kind="primary" href={`/console${connectorsOf(begun.handle)}/${begun.platform}/connect`}>
            {say("connect_again")}
          </ButtonLink>
          <ButtonLink href={`/console${connectorsOf(begun.handle)}`}>{say("back")}</ButtonLink>
        </div>
      ) : null}
    </Page>
  )
}

export default CallbackPage
