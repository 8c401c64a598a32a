/** Updates the table of scopes in docs/permissions.md: `node scripts/scopes.ts`. */
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { endpoints, scopeNames } from "@svc/domain/ScopeTable"

export const page = path.resolve(import.meta.dirname, "../docs/permissions.md")
const begin = "<!-- scopes: written by scripts/scopes.ts -->"
const end = "<!-- end of scopes -->"

const spelled = (method: string, route: string) => `\`${method} ${route.replace(/:(\w+)/g, "{$1}")}\``

/** Returns one line per scope, with the calls that need it. */
const table = (): string => {
  const rows = scopeNames.map((name) => {
    const calls = endpoints.flatMap(({ endpoint, scope, reserved }) => {
      const call = spelled(endpoint.method, endpoint.path)
      const members =
        reserved?.scope === name ? reserved.members.map((member) => `\`${member}\``).join(", ") : undefined
      return [...(scope === name ? [call] : []), ...(members === undefined ? [] : [`${members} of ${call}`])]
    })
    return `| \`${name}\` | ${calls.join("<br>")} |`
  })
  return ["| Scope | Calls that need it |", "|---|---|", ...rows].join("\n")
}

/** Returns the text with the current table. */
export const renewed = (text: string): string => {
  const [before, rest] = text.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error("the page has no place for the table")
  return `${before}${begin}\n\n${table()}\n\n${end}${after}`
}

if (import.meta.main) writeFileSync(page, renewed(readFileSync(page, "utf8")))
