/** `/problems/{code}`: what a problem means and what to do about it, from the one table of problems. */
import { type Code, table } from "@svc/domain/problems/Table"
import { Effect } from "effect"
import { HttpRouter } from "effect/http"
import { page, withCode } from "./Page.ts"

const hints = { fix_call: "Change the call.", wait: "Wait, then call again.", stop: "Do not repeat the call." }

export const layer = HttpRouter.add(
  "GET",
  "/problems/:code",
  Effect.map(HttpRouter.RouteContext, ({ params }) => {
    const code = params["code"] ?? ""
    if (!Object.hasOwn(table, code)) {
      return page({
        status: 404,
        title: "No such problem",
        body: "<h1>No such problem</h1><p>The service knows no problem of this code.</p>",
      })
    }
    const row = table[code as Code]
    return page({
      title: row.title,
      description: `${row.meaning} ${row.remedy}`.replaceAll("`", ""),
      body: `<h1>${withCode(row.title)}</h1><p>${withCode(row.meaning)}</p><p>${withCode(row.remedy)}</p>
<dl><dt>Code</dt><dd><code>${code}</code></dd><dt>HTTP status</dt><dd>${row.status}</dd><dt>Agent hint</dt><dd><code>${row.agent_hint}</code> – ${hints[row.agent_hint]}</dd></dl>`,
    })
  }),
)
