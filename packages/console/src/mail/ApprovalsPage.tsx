/** The messages of an Identity that await approval. */
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"
import { approvalsPath } from "../router/Paths.ts"
import type { Answer } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Facts } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { say } from "../approvals/texts.ts"

type Pending = Answer<"GET /api/identities/:handle/approvals">["approvals"][number]

const One = ({ handle, of }: { readonly handle: string; readonly of: Pending }) => {
  const subject = of.subject === "" ? say("no_subject") : of.subject
  const at = `/console${approvalsPath(handle)}/${of.id}`
  const people = [...of.to, ...of.cc, ...of.bcc].map(({ address }) => address)
  return (
    <article class="box padded stack" aria-label={subject}>
      <h2>
        <a href={at}>
          <bdi>{subject}</bdi>
        </a>
      </h2>
      <Facts
        facts={[
          [say("to"), <bdi>{people.join(", ")}</bdi>],
          [say("asked"), <Time at={of.requested_at} />],
          [say("lapses"), <Time at={of.expires_at} />],
        ]}
      />
      <p>
        <bdi>{of.snippet}</bdi>
      </p>
      {of.attachments.length === 0 ? null : (
        <p class="muted">
          {say("files", { count: of.attachments.length })}:{" "}
          <bdi>{of.attachments.map(({ filename }) => filename ?? say("nameless")).join(", ")}</bdi>
        </p>
      )}
      <div class="bar">
        <ButtonLink href={at}>{say("review")}</ButtonLink>
      </div>
    </article>
  )
}

export const Approvals = ({ handle }: { readonly handle: string }) => {
  const approvals = useList("GET /api/identities/:handle/approvals", { params: { handle }, query: { limit: 50 } })
  return (
    <div class="stack">
      <Loaded of={approvals}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.approvals)
          return all.length === 0 ? (
            <div class="box">
              <Empty icon="check" title={say("none")}>
                {say("none_why")}
              </Empty>
            </div>
          ) : (
            <>
              <p class="muted">{say("why", { handle })}</p>
              {all.map((one) => (
                <One key={one.id} handle={handle} of={one} />
              ))}
            </>
          )
        }}
      </Loaded>
      <More of={approvals} />
    </div>
  )
}

const ApprovalsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle }) => (
      <div class="stack">
        <MailNav handle={handle} />
        <Approvals handle={handle} />
      </div>
    )}
  </IdentityFrame>
)

export default ApprovalsPage
