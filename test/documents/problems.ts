/** Writes docs/problems.md from the table of problems: `node test/documents/problems.ts`. */
import { writeFileSync } from "node:fs"
import * as path from "node:path"
import { table } from "@svc/domain/problems/Table"

const cell = (text: string) => text.replaceAll("|", "\\|")

export const page = (): string =>
  [
    "# Problems",
    "",
    "This page is the reference of every problem that the API returns. A problem is a body (RFC 9457) with a `code`. Its `doc_url`",
    "leads to the same text on the service, `/problems/<code>`. `agent_hint` says what a program should do: `fix_call` (change the",
    "call), `wait` (call again after `retry_after_seconds`, if given) or `stop` (give up). `node test/documents/problems.ts` writes",
    "this page from `packages/domain/src/problems/Table.ts`.",
    "",
    "| code | status | hint | meaning | remedy |",
    "|---|---|---|---|---|",
    ...Object.entries(table).map(
      ([code, { status, agent_hint, meaning, remedy }]) =>
        `| \`${code}\` | ${status} | \`${agent_hint}\` | ${cell(meaning)} | ${cell(remedy)} |`,
    ),
    "",
  ].join("\n")

export const file = path.join(import.meta.dirname, "..", "..", "docs", "problems.md")

if (import.meta.main) writeFileSync(file, page())
