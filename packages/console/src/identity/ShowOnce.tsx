/**
 * The secrets of a new or rotated Identity, until the account holder confirms that they are stored or they expire. The
 * component keeps them in its state, never in the query cache.
 */
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { guarded } from "../router/Router.ts"
import { dateTime } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Secret } from "../ui/Secret.tsx"
import type { Identity } from "../frame/IdentityFrame.tsx"
import { SetUp } from "./SetUp.tsx"
import { say } from "./texts.ts"

type Secrets = Answer<"GET /api/identities/:handle/identity-key">

/** Loads the secrets; undefined until they have loaded. */
export const useSecrets = (handle: string) => {
  const [secrets, setSecrets] = useState<Secrets>()
  useEffect(() => {
    const stopped = new AbortController()
    call("GET /api/identities/:handle/identity-key", { params: { handle } }, { signal: stopped.signal }).then(
      setSecrets,
      () => setSecrets({}),
    )
    return () => stopped.abort()
  }, [handle])
  return [secrets, () => setSecrets({})] as const
}

interface ShowOnceProps {
  readonly identity: Identity
  readonly secrets: Secrets
  readonly forget: () => void
}

export const ShowOnce = ({ identity, secrets, forget }: ShowOnceProps) => {
  const { handle } = identity
  const waits = secrets.identity_key !== undefined || secrets.imap !== undefined
  const command = useCommand(async (key) => {
    await call("POST /api/identities/:handle/identity-key/ack", { params: { handle } }, { key })
    forget()
  })
  // Confirmation in progress needs no warning.
  const asks = waits && !command.busy
  useEffect(() => {
    if (!asks) return undefined
    const leaving = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener("beforeunload", leaving)
    const free = guarded(() => confirm(say("leave")))
    return () => {
      free()
      removeEventListener("beforeunload", leaving)
    }
  }, [asks])
  return waits ? (
    <Section
      title={say("secrets")}
      lead={
        secrets.expires_at === undefined
          ? undefined
          : say("secrets_why", { until: dateTime(new Date(secrets.expires_at)) })
      }
    >
      <div class="box padded secrets stack">
        {secrets.identity_key === undefined ? null : (
          <div class="stack">
            <h3>{say("identity_key")}</h3>
            <Secret value={secrets.identity_key} what={say("identity_key")} />
          </div>
        )}
        {secrets.imap === undefined ? null : (
          <div class="stack">
            <h3>{say("imap_password")}</h3>
            <Secret value={secrets.imap.password} what={say("imap_password")} />
          </div>
        )}
        <h3>{say("set_up")}</h3>
        <SetUp identity={identity} secret={secrets.identity_key} imap={secrets.imap} smtp={secrets.smtp} />
        <ProblemNote failure={command.failure} />
        <div class="bar">
          <Button kind="primary" icon="check" command={command}>
            {say("stored")}
          </Button>
        </div>
      </div>
    </Section>
  ) : (
    <Section title={say("set_up")} lead={say("set_up_why")}>
      <SetUp identity={identity} />
    </Section>
  )
}
