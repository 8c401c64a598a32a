/** Bugs in what MCP clients list and read. */
import type { Mutants } from "./Mutant.ts"

export const mcpClients: Mutants = {
  "subscription-outlives-scope": {
    file: "api/src/mcp/Subscriptions.ts",
    from: "Effect.raceAll([...revoked, departure.await])",
    to: "Effect.raceAll([revoked[0]!, departure.await])",
    bug: "an app learns of changes of a card after the account holder took away the right to read it",
    tests: ["mcp/subscriptions"],
  },
  "subscription-to-unreadable": {
    file: "api/src/mcp/Subscriptions.ts",
    from: "subscription !== undefined && (yield* mayRead(reader))",
    to: "subscription !== undefined",
    bug: "an Identity Key subscribes to the mail of another Identity of its account",
    tests: ["mcp/subscriptions"],
  },
  "subscription-of-other-identity": {
    file: "api/src/mcp/Subscriptions.ts",
    from: "canonical(one.handle) === handle && ",
    to: "",
    bug: "a subscription notifies of changes of every Identity of the account",
    tests: ["mcp/subscriptions"],
  },
  "long-tool-list": {
    file: "api/src/mcp/ToolList.ts",
    from: 'description: firstSentence(schema["description"])',
    to: 'description: schema["description"]',
    bug: "the compact list of tools repeats the complete descriptions of arguments",
    tests: ["mcp/compact"],
  },
  "array-without-items": {
    file: "api/src/mcp/ToolList.ts",
    from: '...(items === undefined ? {} : { items: { type: items["type"] } })',
    to: "",
    bug: "repeated arguments are arrays without the type of their items, which some model providers reject",
    tests: ["mcp/compact"],
  },
  "page-of-any-origin-calls-tools": {
    file: "api/src/http/CrossOrigin.ts",
    from: 'listed === "*" || listed === origin',
    to: "true",
    bug: "pages of every origin may call the MCP server as soon as one origin is listed",
    tests: ["mcp/browser"],
  },
  "page-cannot-read-the-challenge": {
    file: "api/src/http/CrossOrigin.ts",
    from: '"www-authenticate, retry-after, ratelimit, ',
    to: '"retry-after, ratelimit, ',
    bug: "an MCP client in a browser does not learn where to authorize",
    tests: ["mcp/browser"],
  },
  "resource-of-any-address": {
    file: "api/src/mcp/Resources.ts",
    from: '"(?<$1>[A-Za-z0-9._@-]{1,200})"',
    to: '"(?<$1>.+)"',
    bug: "an address with further segments reads another resource",
    tests: ["mcp/resources"],
  },
  "prompt-with-further-steps": {
    file: "api/src/mcp/Prompts.ts",
    from: 'String(value).replace(/\\s+/g, " ").trim()',
    to: "String(value).trim()",
    bug: "an argument of a prompt adds steps of its own",
    tests: ["mcp/resources"],
  },
}
