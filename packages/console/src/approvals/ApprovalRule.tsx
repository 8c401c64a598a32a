/** The setting that requires approval of messages sent with an Identity's own key. */
import { useChoice } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { changing, useCall } from "../client/Queries.ts"
import { Loaded } from "../ui/Loaded.tsx"
import { Section, Segments } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say } from "./texts.ts"

const status = "GET /api/identities/:handle/mail"

export const ApprovalRule = ({ handle }: { readonly handle: string }) => {
  const mail = useCall(status, { params: { handle } })
  const change = useChoice((approval: "none" | "required") =>
    changing(
      status,
      { params: { handle } },
      (before) => ({ ...before, approval }),
      () => call("PATCH /api/identities/:handle/mail", { params: { handle }, body: { approval } }),
    ),
  )
  return (
    <Section title={say("rule")} lead={say("rule_why")}>
      <Loaded of={mail} lines={1}>
        {({ approval }) => (
          <div class="bar">
            <Segments
              label={say("rule")}
              value={approval}
              options={[
                ["none", say("rule_none")],
                ["required", say("rule_required")],
              ]}
              onValue={(wanted) => void change.run(wanted)}
            />
          </div>
        )}
      </Loaded>
      <ProblemNote failure={change.failure} />
    </Section>
  )
}
