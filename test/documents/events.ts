/** Writes docs/events.md from the schemas of Events: `node test/documents/events.ts`. */
import { writeFileSync } from "node:fs"
import * as path from "node:path"
import { identityEvents } from "@svc/domain/events/IdentityEvents"
import { orgEvents } from "@svc/domain/events/OrgEvents"
import { type Schema, SchemaAST } from "effect"

/** Returns the members of all variants of the data in their order. */
const members = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isUnion(ast)
    ? [...new Set(ast.types.flatMap(members))]
    : SchemaAST.isObjects(ast)
      ? ast.propertySignatures.map(({ name }) => String(name))
      : []

const rows = (events: Readonly<Record<string, Schema.Top>>) =>
  Object.entries(events).map(([type, { ast }]) => {
    const names = members(ast).map((name) => `\`${name}\``)
    const meaning = (SchemaAST.resolveDescription(ast) ?? "").replaceAll("|", "\\|").replaceAll("\n", " ")
    return `| \`${type}\` | ${meaning} | ${names.join(", ")} |`
  })

export const page = (): string =>
  [
    "# Events",
    "",
    "This page is the reference of every Event type. An Event has `id`, `type`, `created_at`, `data`, and the Identity that it concerns, if any.",
    "[Use the API](api.md#how-do-you-follow-events) shows how to receive Events, and `/api/docs` has the type of each member.",
    "`node test/documents/events.ts` writes this page from `packages/domain/src/events/IdentityEvents.ts` and",
    "`packages/domain/src/events/OrgEvents.ts`.",
    "",
    "## Which Events concern an Identity?",
    "",
    "Webhooks can subscribe to these types.",
    "",
    "| type | meaning | members of `data` |",
    "|---|---|---|",
    ...rows(identityEvents),
    "",
    "## Which Events concern the account?",
    "",
    "Read these types with `GET /api/events` or the live stream. Webhooks do not receive them.",
    "",
    "| type | meaning | members of `data` |",
    "|---|---|---|",
    ...rows(orgEvents),
    "",
  ].join("\n")

export const file = path.join(import.meta.dirname, "..", "..", "docs", "events.md")

if (import.meta.main) writeFileSync(file, page())
