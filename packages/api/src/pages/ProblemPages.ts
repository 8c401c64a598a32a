/**
 * `/problems/{code}`: what a problem means and what to do about it, from the one table of problems. Its text is English, as
 * in the problem itself; what stands around it is in the reader's language.
 */
import type { Language } from "@svc/domain/account/Account"
import { type AgentHint, type Code, table } from "@svc/domain/problems/Table"
import { Effect } from "effect"
import { HttpRouter } from "effect/http"
import { page, withCode } from "./Page.ts"
import { language } from "./PageLanguage.ts"

interface Words {
  readonly code: string
  readonly status: string
  readonly hint: string
  readonly hints: { readonly [H in AgentHint]: string }
  readonly unknown: readonly [title: string, text: string]
}

const words: { readonly [L in Language]: Words } = {
  en: {
    code: "Code",
    status: "HTTP status",
    hint: "Agent hint",
    hints: { fix_call: "Change the call.", wait: "Wait, then call again.", stop: "Do not repeat the call." },
    unknown: ["No such problem", "The service knows no problem of this code."],
  },
  de: {
    code: "Code",
    status: "HTTP-Status",
    hint: "Hinweis für Agenten",
    hints: {
      fix_call: "Den Aufruf ändern.",
      wait: "Warten, dann erneut aufrufen.",
      stop: "Den Aufruf nicht wiederholen.",
    },
    unknown: ["Dieses Problem gibt es nicht", "Der Dienst kennt kein Problem mit diesem Code."],
  },
  fr: {
    code: "Code",
    status: "Statut HTTP",
    hint: "Conseil aux agents",
    hints: { fix_call: "Modifier l’appel.", wait: "Attendre, puis rappeler.", stop: "Ne pas répéter l’appel." },
    unknown: ["Ce problème n’existe pas", "Le service ne connaît aucun problème de ce code."],
  },
}

export const layer = HttpRouter.add(
  "GET",
  "/problems/:code",
  Effect.map(Effect.all([HttpRouter.RouteContext, language]), ([{ params }, lang]) => {
    const say = words[lang]
    const code = params["code"] ?? ""
    if (!Object.hasOwn(table, code)) {
      const [title, text] = say.unknown
      return page({ status: 404, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })
    }
    const row = table[code as Code]
    return page({
      title: row.title,
      lang,
      description: `${row.meaning} ${row.remedy}`.replaceAll("`", ""),
      body: `<div lang="en"><h1>${withCode(row.title)}</h1><p>${withCode(row.meaning)}</p><p>${withCode(row.remedy)}</p></div>
<dl><dt>${say.code}</dt><dd><code>${code}</code></dd><dt>${say.status}</dt><dd>${row.status}</dd><dt>${say.hint}</dt><dd><code>${row.agent_hint}</code> – ${say.hints[row.agent_hint]}</dd></dl>`,
    })
  }),
)
