/** Bugs in what MCP clients list and read. */
import type { Mutants } from "./Mutant.ts"

export const mcpClients: Mutants = {
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
}
