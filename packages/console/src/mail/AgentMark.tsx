/** The mark of a message from a verified agent. It is a separate file, so that lists of messages do not load its texts. */
import type { Answer } from "../client/Client.ts"
import { texts } from "../texts/Texts.ts"
import { Facts, Status } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"

const say = texts({
  agent: ["Verified agent", "Verifizierter Agent", "Agent vérifié"],
  agent_why: [
    "{domain} signed this message and the DID of its agent. The document of the DID names the sender’s address.",
    "{domain} hat diese Nachricht und die DID des Agenten signiert. Das Dokument der DID nennt die Adresse des Absenders.",
    "{domain} a signé ce message et le DID de son agent. Le document du DID indique l’adresse de l’expéditeur.",
  ],
  agent_inside_why: [
    "An agent of this service sent this message, so no signature had to be checked.",
    "Ein Agent dieses Dienstes hat diese Nachricht gesendet, also musste keine Signatur geprüft werden.",
    "Un agent de ce service a envoyé ce message, donc aucune signature n’a dû être vérifiée.",
  ],
  agent_signed_by: ["Signed by", "Signiert von", "Signé par"],
  this_service: ["This service", "Dieser Dienst", "Ce service"],
  agent_checked: ["Checked", "Geprüft", "Vérifié"],
})

type Origin = Answer<"GET /api/identities/:handle/messages/:id">["origin"]

/** Says that the agent is verified, and on request what was proved and how. */
export const AgentMark = ({ agent }: { readonly agent: NonNullable<Origin["agent"]> }) => (
  <details class="agent-mark small">
    <summary>
      <Status tone="ok">{say("agent")}</Status>
    </summary>
    <p>{say(agent.domain === null ? "agent_inside_why" : "agent_why", { domain: agent.domain ?? "" })}</p>
    <Facts
      facts={[
        ["DID", <code>{agent.did}</code>],
        [say("agent_signed_by"), agent.domain ?? say("this_service")],
        [say("agent_checked"), <Time at={agent.checked_at} form="full" />],
      ]}
    />
  </details>
)
