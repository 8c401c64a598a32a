/** Blocks the console until new Terms of Service are accepted. Export and account deletion stay available. */
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { account, look, signOut } from "../client/Session.ts"
import { maySignOut } from "../client/Unsaved.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Note, Page } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { Removal } from "./Removal.tsx"
import { say } from "./texts.ts"

const TermsPage = () => {
  const { tos } = account()
  const [wanted, setWanted] = useState<string>()
  const accept = useCommand(async (key) => {
    await call("POST /api/auth/tos/acceptance", { body: { version: tos.current_version } }, { key })
    await look()
  })
  const takeAlong = useCommand(async (key) => {
    setWanted((await call("POST /api/exports", { body: {} }, { key })).id)
  })
  const made = useCall(
    "GET /api/exports/:id",
    { params: { id: wanted ?? "" } },
    { enabled: wanted !== undefined, every: (known) => (known?.status === "ready" ? false : 1500) },
  )
  return (
    <main class="plain-page">
      <div class="way-in">
        <Page title={say("gate_title")} lead={say("gate", { version: tos.current_version })}>
          <p class="muted">{say("gate_accepted", { version: tos.accepted_version })}</p>
          <div class="bar">
            <Button kind="primary" command={accept}>
              {say("gate_accept")}
            </Button>
            <ButtonLink href="/terms" target="_blank" icon="out">
              {say("gate_read")}
            </ButtonLink>
          </div>
          <ProblemNote failure={accept.failure} />
          <p class="muted">{say("gate_or")}</p>
          <div class="bar">
            <Button onClick={() => maySignOut() && void signOut()}>{say("sign_out")}</Button>
            <Button command={takeAlong}>{say("take_along")}</Button>
            <Removal>
              <p>{say("remove_why")}</p>
            </Removal>
          </div>
          <ProblemNote failure={takeAlong.failure} />
          {wanted === undefined ? null : (
            <Note>
              {made.data?.status === "ready" ? (
                <ButtonLink href={`/api/exports/${wanted}/archive`} download={`${wanted}.zip`} kind="primary">
                  {common("download")}
                </ButtonLink>
              ) : (
                say("exporting")
              )}
            </Note>
          )}
        </Page>
      </div>
    </main>
  )
}

export default TermsPage
