/** The form that creates an Identity. It checks while typing whether the name is available. */
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call, Refused } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { account } from "../client/Session.ts"
import { useIdentities } from "../shell/Identities.ts"
import { identityPath } from "../router/Paths.ts"
import { go } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { TextField } from "../ui/Field.tsx"
import { Form, wrongAt } from "../ui/Form.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Status, Page } from "../ui/Page.tsx"
import { say } from "./texts.ts"

const NewIdentityPage = () => (
  <Page title={say("new_title")} lead={say("new_lead")}>
    <NewIdentity />
  </Page>
)

export default NewIdentityPage

type Availability = Answer<"GET /api/handles/:handle">

/** Checks the availability of a name after 250 ms without input. */
const useAvailability = (handle: string) => {
  const [found, setFound] = useState<Availability & { readonly of: string }>()
  useEffect(() => {
    if (handle.length < 3) return undefined
    const stopped = new AbortController()
    const timer = setTimeout(() => {
      call("GET /api/handles/:handle", { params: { handle } }, { signal: stopped.signal }).then(
        (answer) => setFound({ ...answer, of: handle }),
        () => undefined,
      )
    }, 250)
    return () => {
      clearTimeout(timer)
      stopped.abort()
    }
  }, [handle])
  return found?.of === handle ? found : undefined
}

/** Returns the mail domain, taken from an existing Identity. */
const useDomain = () => {
  const first = useIdentities().data?.identities[0]
  return first === undefined ? undefined : first.email.slice(first.email.indexOf("@"))
}

const codes = new Set(["handle_taken", "handle_reserved", "handle_invalid"])

export const NewIdentity = () => {
  const [typed, setTyped] = useState("")
  const handle = typed.trim().toLowerCase()
  const found = useAvailability(handle)
  const domain = useDomain()
  const command = useCommand(async (key) => {
    const made = await call("POST /api/identities", { body: { handle } }, { key })
    await outdated(["/api/identities"])
    go(identityPath(made.handle))
  })
  const code = found?.available === false ? found.code : undefined
  const refused =
    command.failure instanceof Refused && codes.has(command.failure.problem.code)
      ? command.failure.problem.detail
      : wrongAt(command.failure, "/handle")
  return (
    <Form onDone={() => void command.run()}>
      <TextField
        label={say("handle")}
        hint={say("handle_hint")}
        wrong={refused ?? (code === undefined ? undefined : say(code))}
        required
        autofocus
        spellcheck={false}
        autocapitalize="off"
        maxLength={63}
        placeholder={account()
          .org.email.split("@")[0]!
          .replaceAll(/[^a-z0-9]+/gi, "-")}
        value={typed}
        onValue={(value) => {
          setTyped(value)
          command.forget()
        }}
        {...(domain === undefined ? {} : { after: domain })}
      />
      <div class="bar">
        <Button type="submit" kind="primary" busy={command.busy} disabled={handle === "" || code !== undefined}>
          {say("create")}
        </Button>
        <span role="status">
          {found?.available === true ? <Status tone="ok">{say("free", { handle })}</Status> : null}
        </span>
      </div>
      {refused === undefined ? <ProblemNote failure={command.failure} /> : null}
    </Form>
  )
}
