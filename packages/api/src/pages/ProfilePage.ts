/** The public profile page of an Identity, and its A2A agent card. */
import { type AddressBook, Addresses, did, didUrl, jwksUrl, tunnelUrl } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import type { Profile } from "@svc/domain/card/Card"
import type { StoredSignatures } from "@svc/domain/card/CardSignature"
import { canonical } from "@svc/domain/handles/Handle"
import { tagOf } from "@svc/domain/Precondition"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { limited } from "../limits/PublicLimit.ts"
import { render } from "../problems/Render.ts"
import { RequestId } from "../RequestContext.ts"
import { escape, laterPage, page } from "./Page.ts"
import { language } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

const words = texts({
  agent: ["AI agent", "KI-Agent", "Agent IA"],
  mail: ["Email", "E-Mail", "E-mail"],
  operator: ["Operated by", "Betrieben von", "Exploité par"],
  documentation: ["Documentation", "Dokumentation", "Documentation"],
  version: ["Version", "Version", "Version"],
  card: ["Agent card", "Agentenkarte", "Carte d’agent"],
  proof: ["Verification", "Verifizierung", "Vérification"],
  signed: [
    (keys: string) => `The agent card is signed with ${keys}.`,
    (keys: string) => `Die Agentenkarte ist mit ${keys} signiert.`,
    (keys: string) => `La carte d’agent est signée avec ${keys}.`,
  ],
  intro: [
    (did: string) => `Anyone can verify this agent without an account. Its public keys are in the document of ${did}.`,
    (did: string) =>
      `Jeder kann diesen Agenten ohne Konto prüfen. Seine öffentlichen Schlüssel stehen im Dokument von ${did}.`,
    (did: string) =>
      `Chacun peut vérifier cet agent sans compte. Ses clés publiques se trouvent dans le document de ${did}.`,
  ],
  mails: [
    (field: string, domain: string) => `Its email names this DID in ${field}; ${domain} signs this field (DKIM).`,
    (field: string, domain: string) =>
      `Seine E-Mails nennen diese DID in ${field}; ${domain} signiert dieses Feld (DKIM).`,
    (field: string, domain: string) => `Ses e-mails indiquent ce DID dans ${field} ; ${domain} signe ce champ (DKIM).`,
  ],
  requests: [
    (origin: string) => `Its signed web requests name ${origin}, which lists the key (Web Bot Auth).`,
    (origin: string) => `Seine signierten Webanfragen nennen ${origin}, wo der Schlüssel steht (Web Bot Auth).`,
    (origin: string) => `Ses requêtes web signées indiquent ${origin}, qui publie la clé (Web Bot Auth).`,
  ],
  tokens: [
    (issuer: string) => `Its identity tokens are issued by ${issuer} (OpenID Connect).`,
    (issuer: string) => `Seine Identitätstoken stellt ${issuer} aus (OpenID Connect).`,
    (issuer: string) => `Ses jetons d’identité sont émis par ${issuer} (OpenID Connect).`,
  ],
  how: ["How to verify each of them", "So wird es geprüft", "Comment le vérifier"],
  keys: ["the agent’s key", "dem Schlüssel des Agenten", "la clé de l’agent"],
  skills: ["Skills", "Fähigkeiten", "Compétences"],
  unknown: [
    ["Agent not found", "No agent has this name."],
    ["Agent nicht gefunden", "Kein Agent hat diesen Namen."],
    ["Agent introuvable", "Aucun agent ne porte ce nom."],
  ],
  tooMany: [
    ["Too many requests", "Wait a minute, then try again."],
    ["Zu viele Anfragen", "Warte eine Minute und versuche es dann noch einmal."],
    ["Trop de requêtes", "Attendez une minute, puis réessayez."],
  ],
})

const skillItem = (skill: Profile["skills"][number]) =>
  `<li><h3>${escape(skill.name)}</h3><p>${escape(skill.description)}</p>${
    (skill.tags ?? []).length === 0
      ? ""
      : `<p class="tags">${(skill.tags ?? []).map((tag) => `<span>${escape(tag)}</span>`).join(" ")}</p>`
  }${(skill.examples ?? []).map((example) => `<blockquote>${escape(example)}</blockquote>`).join("")}</li>`

const link = (url: string, text: string) => `<a href="${escape(url)}" rel="nofollow ugc noopener">${escape(text)}</a>`

interface Shown {
  readonly documentationUrl?: string
  readonly version?: string
  readonly signatures?: unknown
  readonly supportedInterfaces?: ReadonlyArray<{ readonly url: string; readonly protocolBinding: string }>
}

/** Allows line breaks between the words of an address, so that narrow screens do not break within a word. */
const breakable = (address: string) => escape(address).replace(/[@./:-]+(?=\w)/g, "$&<wbr>")

/** Texts of the agent have an unknown language, so they are marked with `lang=""`. */
const body = (book: AddressBook, profile: Profile, say: (typeof words)[Language]) => {
  const card = profile.card as Shown
  const pathOf = (url: string) => escape(new URL(url).pathname)
  const { handle } = profile
  const rows: ReadonlyArray<readonly [string, string]> = [
    [say.mail, `<a href="mailto:${escape(profile.email)}">${breakable(profile.email)}</a>`],
    ...(profile.provider === null
      ? []
      : [[say.operator, link(profile.provider.url, profile.provider.organization)] as const]),
    ...(card.documentationUrl === undefined
      ? []
      : [[say.documentation, link(card.documentationUrl, card.documentationUrl)] as const]),
    ...(card.supportedInterfaces ?? []).map(
      (one) => [escape(one.protocolBinding), `<code>${breakable(one.url)}</code>`] as const,
    ),
    [say.version, escape(card.version ?? "")],
    [say.card, `<a href="${pathOf(profile.card_url)}">A2A 1.0 JSON</a>`],
  ]
  const code = (text: string) => `<code>${breakable(text)}</code>`
  const proofs: ReadonlyArray<string> = [
    ...(card.signatures === undefined
      ? []
      : [say.signed(`<a href="${pathOf(jwksUrl(book, handle))}">${say.keys}</a>`)]),
    say.mails("<code>Agent-Identity</code>", code(book.mailDomain)),
    say.requests(code(tunnelUrl(book, handle))),
    say.tokens(code(book.baseUrl)),
  ]
  return `<header class="profile"><span class="avatar" aria-hidden="true">${escape([...profile.name][0]?.toUpperCase() ?? "")}</span>
<div><h1 lang="">${escape(profile.name)}</h1><p class="handle">@${escape(profile.handle)} <span class="badge">${say.agent}</span></p></div></header>
${profile.description === "" ? "" : `<p class="lead" lang="">${escape(profile.description)}</p>`}
<dl>${rows.map(([term, value]) => `<dt>${term}</dt><dd>${value}</dd>`).join("")}</dl>
${profile.skills.length === 0 ? "" : `<h2>${say.skills}</h2><ul class="skills" lang="">${profile.skills.map(skillItem).join("")}</ul>`}
<h2>${say.proof}</h2><p>${say.intro(`<a href="${pathOf(didUrl(book, handle))}">${code(did(book, handle))}</a>`)}</p>
<ul>${proofs.map((proof) => `<li>${proof}</li>`).join("")}</ul>
<p><a href="${escape(book.baseUrl)}/docs/proof">${say.how}</a></p>`
}

/** A rotation of the key changes the signatures of the same version. */
const tagOfSigned = (version: number, signatures: StoredSignatures | null) =>
  signatures === null ? tagOf(version) : `"v${version}.${signatures.signatures[0]!.signature.slice(0, 12)}"`

const notice = (lang: Language, [title, text]: readonly [string, string], status: number) =>
  page({ status, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const cards = yield* CardQueries
    const limits = yield* PublicLimits
    const book = yield* Addresses

    yield* router.add(
      "GET",
      "/@:handle",
      Effect.flatMap(language, (lang) =>
        Effect.gen(function* () {
          const spelling = (yield* HttpRouter.RouteContext).params["handle"] ?? ""
          yield* limited(limits, "profile")
          const { profile } = yield* cards.profile(canonical(spelling))
          // Other spellings of the Handle redirect to the registered one.
          if (spelling !== profile.handle) return HttpServerResponse.redirect(`/@${profile.handle}`, { status: 308 })
          return page({
            title: `${profile.name} (@${profile.handle})`,
            lang,
            body: body(book, profile, words[lang]),
            description: profile.description,
          })
        }).pipe(
          Effect.catchTags({
            not_found: () => Effect.succeed(notice(lang, words[lang].unknown, 404)),
            rate_limited: () => Effect.succeed(notice(lang, words[lang].tooMany, 429)),
            unavailable: () => Effect.succeed(laterPage(lang)),
          }),
        ),
      ),
    )

    yield* router.add(
      "GET",
      "/@:handle/agent-card.json",
      Effect.gen(function* () {
        const spelling = (yield* HttpRouter.RouteContext).params["handle"] ?? ""
        yield* limited(limits, "profile")
        const { profile, version, signatures } = yield* cards.profile(canonical(spelling))
        return HttpServerResponse.jsonUnsafe(profile.card, {
          headers: {
            etag: tagOfSigned(version, signatures),
            "cache-control": "public, max-age=0, must-revalidate",
            "access-control-allow-origin": "*",
          },
        })
      }).pipe(
        Effect.catchTags({
          not_found: (problem) => Effect.map(RequestId, (id) => render(book, id, problem)),
          rate_limited: (problem) => Effect.map(RequestId, (id) => render(book, id, problem)),
          unavailable: (problem) => Effect.map(RequestId, (id) => render(book, id, problem)),
        }),
        Effect.map((response) => HttpServerResponse.setHeader(response, "access-control-allow-origin", "*")),
      ),
    )
  }),
)
