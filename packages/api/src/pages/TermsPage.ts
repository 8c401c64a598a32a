/** The Terms of Service that sign-up accepts. The Terms are English; the rest of the page is in the reader's language. */
import type { Language } from "@svc/domain/account/Account"
import { Effect, type Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { escape, page } from "./Page.ts"
import { language } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

export interface Terms {
  readonly version: string
  /** The address of the operator's own Terms, which replace the built-in text. */
  readonly url: Option.Option<string>
}

const words = texts({
  title: ["Terms of Service", "Nutzungsbedingungen", "Conditions d’utilisation"],
  description: [
    "What the service does, what is not allowed, what happens to your data, and how to end the contract.",
    "Was der Dienst leistet, was nicht erlaubt ist, was mit deinen Daten geschieht und wie der Vertrag endet.",
    "Ce que fait le service, ce qui est interdit, ce que deviennent vos données et comment mettre fin au contrat.",
  ],
  version: ["Version", "Version", "Version"],
  /** Shown if the page and the Terms have different languages. */
  written: [
    undefined,
    "Der Text der Nutzungsbedingungen ist auf Englisch.",
    "Le texte des conditions d’utilisation est en anglais.",
  ],
})

const text = `<div lang="en"><h2>What the service does</h2><p>The service gives the account holder's software agents a public identity: a name, a mailbox, a tunnel, a card, a vault and webhooks. The account holder is responsible for what these agents do.</p>
<h2>What is not allowed</h2><p>Unsolicited mail, deceiving anyone about who or what an agent is, impersonating someone else, and anything unlawful. Every message that an agent sends states that an agent wrote it.</p>
<h2>Your data</h2><p>Your data belongs to you. It is stored only to run the service, can be exported at any time, and is deleted with the account. Names stay reserved so that nobody can be mistaken for a former holder.</p>
<h2>Ending the contract</h2><p>The account holder can delete the account at any time. The operator may stop an identity that violates these Terms.</p>
<h2>Changes</h2><p>A new version has a new number and a date from which the console asks you to accept it. The API keeps working meanwhile.</p></div>`

const terms = (lang: Language, number: string) => {
  const { title, description, version, written } = words[lang]
  return page({
    title,
    lang,
    description,
    forEveryone: true,
    body: `<h1>${title}</h1><p>${version} ${escape(number)}</p>${written === undefined ? "" : `<p class="told">${written}</p>`}
${text}`,
  })
}

export const layer = ({ version, url }: Terms) => {
  const pages = { en: terms("en", version), de: terms("de", version), fr: terms("fr", version) }
  const ownTerms = url._tag === "Some" ? HttpServerResponse.redirect(url.value, { status: 302 }) : undefined
  return HttpRouter.add(
    "GET",
    "/terms",
    Effect.map(language, (lang) => ownTerms ?? pages[lang]),
  )
}
