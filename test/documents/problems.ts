/** Writes docs/problems.md from the table of refusals: `node test/documents/problems.ts`. */
import { writeFileSync } from "node:fs"
import * as path from "node:path"
import { table } from "@svc/domain/problems/Table"

const cell = (text: string) => text.replaceAll("|", "\\|")

export const page = (): string =>
  [
    "# Problems",
    "",
    "Every refusal of the API is a problem body (RFC 9457) with a `code`; its `doc_url` leads to this text on the service itself,",
    "`/problems/<code>`. `agent_hint` says whether to change the call (`fix_call`), to call again later (`wait`, after",
    "`retry_after_seconds` where it is there), or to give up (`stop`). This page is made of the one table of them",
    "(`packages/domain/src/problems/Table.ts`) by `node test/documents/problems.ts`.",
    "",
    "| code | status | hint | means | do |",
    "|---|---|---|---|---|",
    ...Object.entries(table).map(
      ([code, { status, agent_hint, meaning, remedy }]) =>
        `| \`${code}\` | ${status} | \`${agent_hint}\` | ${cell(meaning)} | ${cell(remedy)} |`,
    ),
    "",
  ].join("\n")

export const file = path.join(import.meta.dirname, "..", "..", "docs", "problems.md")

if (import.meta.main) writeFileSync(file, page())
