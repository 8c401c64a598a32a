/** Messages that an agent wants to send: read, then approved or refused with a reason. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useList } from "../client/Queries.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Form, TextField, wrongAt } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Facts } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

type Pending = Answer<"GET /api/identities/:handle/approvals">["approvals"][number]

const subjectOf = ({ subject }: Pending) => (subject === "" ? say("no_subject") : subject)

const reread = (handle: string) =>
  outdated(["/api/identities/:handle/approvals", "/api/identities/:handle/messages"], handle)

interface OneProps {
  readonly handle: string
  readonly of: Pending
}

const Refusing = ({ handle, of, onClose }: OneProps & { readonly onClose: () => void }) => {
  const [reason, setReason] = useState("")
  const refuse = useAct(async (act) => {
    await call(
      "POST /api/identities/:handle/approvals/:id/refuse",
      { params: { handle, id: of.id }, body: reason.trim() === "" ? {} : { reason } },
      { act },
    )
    tell(say("refused", { subject: subjectOf(of) }))
    onClose()
    await reread(handle)
  })
  return (
    <Dialog title={say("refuse_title", { subject: subjectOf(of) })} onClose={onClose}>
      <Form onDone={() => void refuse.run()}>
        <p>{say("refuse_why")}</p>
        <TextField
          label={say("reason")}
          value={reason}
          onValue={setReason}
          maxLength={500}
          optional
          autofocus
          wrong={wrongAt(refuse.failure, "/reason")}
        />
        <ProblemNote failure={refuse.failure} />
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button kind="fatal" type="submit" busy={refuse.busy}>
            {say("refuse")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}

const One = ({ handle, of }: OneProps) => {
  const [refusing, setRefusing] = useState(false)
  const approve = useAct(async (act) => {
    await call("POST /api/identities/:handle/approvals/:id/approve", { params: { handle, id: of.id } }, { act })
    tell(say("approved", { subject: subjectOf(of) }))
    await reread(handle)
  })
  const people = [...of.to, ...of.cc, ...of.bcc].map(({ address }) => address)
  return (
    <article class="box padded stack" aria-label={subjectOf(of)}>
      <h2>
        <bdi>{subjectOf(of)}</bdi>
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
      {of.attachments.length === 0 ? null : <p class="muted">{say("files", { count: of.attachments.length })}</p>}
      <div class="bar">
        <Button busy={approve.busy} icon="check" onClick={() => void approve.run()}>
          {say("approve")}
        </Button>
        <Button kind="danger" onClick={() => setRefusing(true)}>
          {say("refuse")}
        </Button>
        <ButtonLink href={`/console/identities/${encodeURIComponent(handle)}/mail/${of.id}`}>{say("read")}</ButtonLink>
      </div>
      <ProblemNote failure={approve.failure} />
      {refusing ? <Refusing handle={handle} of={of} onClose={() => setRefusing(false)} /> : null}
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
            <Empty icon="check" title={say("none")}>
              {say("none_why")}
            </Empty>
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
