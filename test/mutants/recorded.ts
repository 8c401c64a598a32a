/** Planted bugs that change something in the recorded files: transcripts, readings, dialogues, tables and states. */
import type { Mutants } from "./Mutant.ts"

export const recorded: Mutants = {
  "quick-resync-with-known-uids": {
    file: "mail-gateway/src/mail/imap/protocol/Parser.ts",
    from: '      known = set\n      reader.takes(" ")\n',
    to: "      known = set\n",
    bug: "SELECT with known UIDs and sequence numbers is refused (RFC 7162)",
    tests: ["mail/imap/transcripts"],
  },
  "literal-of-refused-line": {
    file: "mail-gateway/src/mail/imap/protocol/Framing.ts",
    from: "const tailBytes = 40",
    to: "const tailBytes = 4",
    bug: "the literal of a command that is too long is read as commands",
    tests: ["mail/imap/transcripts"],
  },
  "status-of-unlisted-folder": {
    file: "mail-gateway/src/mail/imap/session/FolderCommands.ts",
    from: 'if (returns.has("STATUS") && folder !== undefined && chosen)',
    to: 'if (returns.has("STATUS") && folder !== undefined)',
    bug: "LIST returns the status of folders that were not selected",
    tests: ["mail/imap/transcripts"],
  },
  "footer-of-plain-text": {
    file: "mail-gateway/src/mail/mime/Decode.ts",
    from: "        if (!isAfterWhole) return body.length\n",
    to: "",
    bug: "plain text after an incomplete Base64 group is taken for a footer",
    tests: ["mail/readings"],
  },
  "structure-of-no-language": {
    file: "mail-gateway/src/mail/mime/Structure.ts",
    from: "node.lang.length === 1",
    to: "node.lang.length >= 1",
    bug: "BODYSTRUCTURE has only the first of several languages",
    tests: ["mail/readings"],
  },
  "submission-tags-sender": {
    file: "mail-gateway/src/mail/Submission.ts",
    from: "parsed?.mailbox === account.canonical && parsed.tag === null",
    to: "parsed?.mailbox === account.canonical",
    bug: "an envelope sender with a tag is accepted",
    tests: ["mail/reception"],
  },
  "edge-response-is-cached": {
    file: "tunnel-edge/src/edge/http/EdgeResponses.ts",
    from: '    "cache-control": "no-store",\n    "x-content',
    to: '    "x-content',
    bug: "a proxy may store the edge's responses",
    tests: ["tunnel/tables"],
  },
  "upgrade-with-a-body": {
    file: "tunnel-edge/src/protocol/RequestHead.ts",
    from: "if (changesProtocol && (chunked || (length ?? 0) > 0))",
    to: "if (changesProtocol && chunked)",
    bug: "a request for an upgrade may have a body of a given length",
    tests: ["tunnel/tables"],
  },
  "too-much-credit": {
    file: "tunnel-edge/src/protocol/MuxStream.ts",
    from: "if (this.credit > limits.windowAtMost)",
    to: "if (this.credit > limits.windowAtMost + 1)",
    bug: "a peer may grant more than the largest window",
    tests: ["tunnel/tables"],
  },
  "bluesky-picture-of-any-size": {
    file: "cluster/src/connectors/platforms/bluesky/Options.ts",
    from: " || content_base64.length > (imageBytes / 3) * 4 + 4",
    to: "",
    bug: "a picture above the limit of Bluesky is accepted",
    tests: ["connectors/tables"],
  },
  "unknown-option-of-a-post": {
    file: "cluster/src/connectors/Refusals.ts",
    from: 'failure._tag === "InputRefused" && failure.unknownOption === true',
    to: "false",
    bug: "an unknown option of a post is reported as an invalid request",
    tests: ["connectors/tables"],
  },
}
