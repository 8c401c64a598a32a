/**
 * The page between a link in a mail and its destination, which shows the host first. Addresses are stamped, so that the
 * page only links to addresses found in mail, and nobody can use it as an open redirect.
 */
import { domainToUnicode } from "node:url"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { escape, page } from "../pages/Page.ts"
import { language } from "../pages/PageLanguage.ts"

const scope = "console/leave"

export const leaveAddress = (sealing: Sealing["Service"], to: string) =>
  `/console/leave?to=${encodeURIComponent(sealing.stamp(scope, to))}`

const LeaveQuery = Schema.Struct({ to: Schema.String.check(Schema.isMaxLength(8000)) })

const said = {
  en: {
    title: "You are leaving",
    lead: "A link in an email leads to",
    mail: "A link in an email starts a message to",
    foreign: "The name contains letters from other alphabets. It may imitate a name that you know.",
    plain: "The connection is not encrypted.",
    go: "Continue",
    stay: "Close this tab to stay.",
    unknown: "This link was not created by this service.",
  },
  de: {
    title: "Du verlässt die Konsole",
    lead: "Ein Link in einer E-Mail führt zu",
    mail: "Ein Link in einer E-Mail beginnt eine Nachricht an",
    foreign: "Der Name enthält Buchstaben aus anderen Alphabeten. Er ahmt vielleicht einen bekannten Namen nach.",
    plain: "Die Verbindung ist nicht verschlüsselt.",
    go: "Weiter",
    stay: "Schließe diesen Tab, um zu bleiben.",
    unknown: "Dieser Link stammt nicht von diesem Dienst.",
  },
  fr: {
    title: "Vous quittez la console",
    lead: "Un lien d’un e-mail mène à",
    mail: "Un lien d’un e-mail commence un message à",
    foreign: "Le nom contient des lettres d’autres alphabets. Il imite peut-être un nom que vous connaissez.",
    plain: "La connexion n’est pas chiffrée.",
    go: "Continuer",
    stay: "Fermez cet onglet pour rester.",
    unknown: "Ce lien ne provient pas de ce service.",
  },
} as const

/** Decodes percent-encoding, or returns the text unchanged if it is not UTF-8 (`mailto:%ff`). */
const readable = (encoded: string): string => {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const sealing = yield* Sealing
    yield* router.add(
      "GET",
      "/console/leave",
      Effect.gen(function* () {
        const lang = yield* language
        const texts = said[lang]
        const query = yield* Effect.option(HttpServerRequest.schemaSearchParams(LeaveQuery))
        const stamped = query._tag === "Some" ? sealing.unstamp(scope, query.value.to) : undefined
        const url = stamped === undefined ? null : URL.parse(stamped)
        if (url === null) {
          return page({ title: texts.title, lang, status: 404, body: `<h1>${texts.unknown}</h1>` })
        }
        const isMail = url.protocol === "mailto:"
        const host = isMail ? readable(url.pathname) : url.host
        const unicode = isMail ? host : domainToUnicode(url.hostname)
        const foreign = !isMail && unicode !== "" && unicode !== url.hostname
        const body = `<h1>${texts.title}</h1><p>${isMail ? texts.mail : texts.lead}</p><pre><bdi>${escape(host)}</bdi>${foreign ? `\n<bdi>${escape(unicode)}</bdi>` : ""}</pre>
${foreign ? `<p class="told">${texts.foreign}</p>` : ""}${url.protocol === "http:" ? `<p class="told">${texts.plain}</p>` : ""}
<p><code><bdi>${escape(url.href)}</bdi></code></p>
<p><a class="button" href="${escape(url.href)}" rel="noopener noreferrer nofollow">${texts.go}</a></p><p>${texts.stay}</p>`
        return HttpServerResponse.setHeader(
          page({ title: texts.title, lang, body, unlisted: true }),
          "referrer-policy",
          "no-referrer",
        )
      }),
    )
  }),
)
