/** Planted bugs in the proof of the agents that send mail. */
import type { Mutants } from "./Mutant.ts"

export const mailAgents: Mutants = {
  "agent-field-unsigned": {
    file: "mail-gateway/src/mail/sending/Signing.ts",
    from: '  "Agent-Identity",\n',
    to: "",
    bug: "anyone can change the agent that a message of an Identity names",
    tests: ["mail/sending/dkim"],
  },
  "agent-of-uncovered-field": {
    file: "mail-gateway/src/mail/Origin.ts",
    from: "coversAll && coversAgent && signedBy",
    to: "coversAll && signedBy",
    bug: "an unsigned field names the agent of a message",
    tests: ["mail/agent-claims"],
  },
  "agent-of-two-fields": {
    file: "mail-gateway/src/mail/Origin.ts",
    from: "rows.length === 1 ? valueOf",
    to: "rows.length > 0 ? valueOf",
    bug: "a field that was added to a message names its agent",
    tests: ["mail/agent-claims"],
  },
  "agent-of-any-subdomain": {
    file: "mail-gateway/src/mail/Origin.ts",
    from: "dkimAligned === undefined\n",
    to: "dkimAligned !== null\n",
    bug: "a subdomain that the policy of a domain excludes names the agents of the domain",
    tests: ["mail/agent-claims"],
  },
  "agent-of-another-address": {
    file: "cluster/src/proof/DidDocuments.ts",
    from: "also.some((uri) => mailboxOf(uri) === wanted)",
    to: "also.some((uri) => mailboxOf(uri) !== undefined)",
    bug: "a domain's mail is attributed to an agent of another domain",
    tests: ["mail/agents"],
  },
  "agent-of-another-document": {
    file: "cluster/src/proof/DidDocuments.ts",
    from: '        document?.["id"] === did &&\n',
    to: "",
    bug: "a host serves the document of one DID for another",
    tests: ["mail/agents"],
  },
  "document-unbounded": {
    file: "cluster/src/proof/ForeignDocuments.ts",
    from: "atMost: bytesAtMost",
    to: "atMost: 1 << 30",
    bug: "a stranger makes the service read a document of any size",
    tests: ["mail/agents"],
  },
  "own-agent-fetched": {
    file: "cluster/src/proof/DidDocuments.ts",
    from: "const handle = handleOf(book, did)",
    to: "const handle = undefined as ReturnType<typeof handleOf>",
    bug: "the documents of the service's own Identities are fetched over the network",
    tests: ["mail/agents"],
  },
  "agent-claim-forgotten": {
    file: "cluster/src/mail/AgentClaims.ts",
    from: "where c.message_id = o.id and o.next is not null",
    to: "where false",
    bug: "a host that does not respond is asked for its document without end",
    tests: ["mail/agents"],
  },
  "agent-without-etag": {
    file: "cluster/src/mail/AgentClaims.ts",
    from: "set summary = jsonb_set(m.summary, '{origin,agent}', p.agent), modseq = box.modseq",
    to: "set summary = jsonb_set(m.summary, '{origin,agent}', p.agent)",
    bug: "a reader with a cached message never learns of its agent",
    tests: ["mail/agents"],
  },
  "agent-of-the-author": {
    file: "mail-gateway/src/mail/composing/MessageWriter.ts",
    from: '      "Agent-Identity": draft.did,\n',
    to: "",
    bug: "messages do not name their agent",
    tests: ["mail/sending/round", "mail/submission/submission"],
  },
}
