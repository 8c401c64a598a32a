/** The sites at which an Identity signed in, and those that await approval. */
import { type Answer, call } from "../client/Client.ts"
import { useCommand } from "../client/Commands.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Section, Status, type Tone } from "../ui/Page.tsx"
import { ProblemNotes } from "../ui/Problem.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

type SignIn = Answer<"GET /api/identities/:handle/sign-ins/:id">

interface OfSignIn {
  readonly handle: string
  readonly of: SignIn
}

const tones = {
  awaiting_approval: "warn",
  approved: "busy",
  refused: "bad",
  expired: "off",
  started: "busy",
  signed_in: "ok",
  ended: "off",
} as const satisfies Record<SignIn["status"], Tone>

const reread = (handle: string) => outdated(["/api/identities/:handle/sign-ins"], handle)

const About = ({ of: { site, client_name } }: { readonly of: SignIn }) => (
  <>
    <bdi class="mono">{site}</bdi>
    <div class="muted small">
      <bdi>{say("calls_itself", { name: client_name })}</bdi>
    </div>
  </>
)

/** A sign-in that awaits approval. */
const Waiting = ({ handle, of }: OfSignIn) => {
  const { id, site } = of
  const params = { handle, id }
  const approve = useCommand(async (key) => {
    await call("POST /api/identities/:handle/sign-ins/:id/approve", { params }, { key })
    tell(say("approved_at", { site }))
    await reread(handle)
  })
  const refuse = useCommand(async (key) => {
    await call("POST /api/identities/:handle/sign-ins/:id/refuse", { params }, { key })
    await reread(handle)
  })
  return (
    <li>
      <div class="grow">
        <About of={of} />
        <div class="muted small">
          {say("wants", { scopes: of.scopes.join(" ") })} · <Time at={of.created_at} />
        </div>
        <ProblemNotes of={[approve, refuse]} />
      </div>
      <div class="bar">
        <Button small kind="primary" command={approve} aria-label={say("approve_at", { site })}>
          {say("approve")}
        </Button>
        <Button small command={refuse} aria-label={say("refuse_at", { site })}>
          {say("refuse")}
        </Button>
      </div>
    </li>
  )
}

const Row = ({ handle, of }: OfSignIn) => {
  const { id, site, status } = of
  const end = useCommand(async () => {
    await call("DELETE /api/identities/:handle/sign-ins/:id", { params: { handle, id } })
    await reread(handle)
  })
  return (
    <tr>
      <td>
        <About of={of} />
      </td>
      <td>
        <Status tone={tones[status]}>{say(status)}</Status>
      </td>
      <td class="mono small">{of.scopes.join(" ")}</td>
      <td class="muted">
        <Time at={of.signed_in_at ?? of.created_at} />
      </td>
      <td class="end">
        {status === "signed_in" || status === "started" || status === "approved" ? (
          <ConfirmButton
            small
            kind="danger"
            icon="cross"
            doing={say("end")}
            name={say("end_at", { site })}
            title={say("end_title", { site })}
            command={end}
            onDone={() => tell(say("ended_at_site", { site }))}
          >
            <p>{say("end_why")}</p>
          </ConfirmButton>
        ) : null}
      </td>
    </tr>
  )
}

export const useSignIns = (handle: string) =>
  useList("GET /api/identities/:handle/sign-ins", { params: { handle }, query: { limit: 20 } })

export const SignIns = ({ handle }: { readonly handle: string }) => {
  const signIns = useSignIns(handle)
  return (
    <Loaded of={signIns} lines={3}>
      {({ pages }) => {
        const all = pages.flatMap(({ sign_ins }) => sign_ins)
        const waiting = all.filter(({ status }) => status === "awaiting_approval")
        const others = all.filter(({ status }) => status !== "awaiting_approval")
        return (
          <>
            {waiting.length === 0 ? null : (
              <Section title={say("waiting")} lead={say("waiting_why")}>
                <ul class="box rows waiting">
                  {waiting.map((one) => (
                    <Waiting key={one.id} handle={handle} of={one} />
                  ))}
                </ul>
              </Section>
            )}
            <Section title={say("sign_ins")} lead={say("sign_ins_why")}>
              {others.length === 0 ? (
                <p class="muted">{say("no_sign_in")}</p>
              ) : (
                <Table
                  label={say("sign_ins")}
                  heads={[say("site"), say("status"), say("scopes"), say("when")]}
                  acts={say("actions")}
                >
                  {others.map((one) => (
                    <Row key={one.id} handle={handle} of={one} />
                  ))}
                </Table>
              )}
              <More of={signIns} />
            </Section>
          </>
        )
      }}
    </Loaded>
  )
}
