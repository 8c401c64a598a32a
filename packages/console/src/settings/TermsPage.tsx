/** The current and the accepted Terms of Service. New ones can be accepted before they take effect. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { account, look } from "../client/Session.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Facts, Note, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { Frame } from "./Frame.tsx"
import { say } from "./texts.ts"

const TermsPage = () => {
  const { tos } = account()
  const accept = useCommand(async (key) => {
    await call("POST /api/auth/tos/acceptance", { body: { version: tos.current_version } }, { key })
    await look()
  })
  const isNewer = tos.current_version !== tos.accepted_version
  return (
    <Frame>
      <Section title={say("terms")}>
        <Facts
          facts={[
            [say("terms_current"), tos.current_version],
            tos.effective_at !== null && [say("terms_from"), <Time at={tos.effective_at} form="full" />],
            [
              say("terms_accepted"),
              <span>
                {tos.accepted_version} {say("terms_at")} <Time at={tos.accepted_at} form="full" />
              </span>,
            ],
          ]}
        />
        {isNewer ? null : <Note tone="ok">{say("terms_done")}</Note>}
        <div class="bar">
          {isNewer ? (
            <Button kind="primary" command={accept}>
              {say("terms_accept", { version: tos.current_version })}
            </Button>
          ) : null}
          <ButtonLink href="/terms" target="_blank" icon="out">
            {say("terms_read")}
          </ButtonLink>
        </div>
        <ProblemNote failure={accept.failure} />
      </Section>
    </Frame>
  )
}

export default TermsPage
