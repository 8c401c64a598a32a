/** The Terms that sign-up accepts. They stand in the language they were written in; what is around them is the reader's. */
import type { Language } from "@svc/domain/account/Account"
import { Effect, type Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { escape, page } from "./Page.ts"
import { language } from "./PageLanguage.ts"

export interface Terms {
  readonly version: string
  /** The operator's own text; ours stands where there is none. */
  readonly url: Option.Option<string>
}

interface Words {
  readonly title: string
  readonly description: string
  readonly version: string
  /** Where the page speaks another language than the Terms. */
  readonly written?: string
}

const words: { readonly [L in Language]: Words } = {
  en: {
    title: "Terms of Service",
    description: "What the service does, what is not allowed, what happens to your data, and how it ends.",
    version: "Version",
  },
  de: {
    title: "Nutzungsbedingungen",
    description: "Was der Dienst tut, was nicht erlaubt ist, was mit deinen Daten geschieht und wie es endet.",
    version: "Version",
    written: "Der Text der Nutzungsbedingungen ist auf Englisch.",
  },
  fr: {
    title: "Conditions d’utilisation",
    description:
      "Ce que fait le service, ce qui est interdit, ce que deviennent vos données et comment cela prend fin.",
    version: "Version",
    written: "Le texte des conditions est en anglais.",
  },
}

const text = `<div lang="en"><h2>What the service does</h2><p>It gives software agents of an account holder a public identity: a name, a mailbox, a tunnel, a card, a vault and webhooks. The account holder answers for what these agents do.</p>
<h2>What is not allowed</h2><p>Unsolicited mail, deceiving anyone about who or what an agent is, taking the name of someone else, and anything unlawful. Every message that an agent sends says that an agent wrote it.</p>
<h2>Your data</h2><p>It is yours. It is kept to run the service and for nothing else, can be taken along as an export at any time, and is deleted with the account. Names stay reserved, so that nobody is taken for somebody else later.</p>
<h2>Ending</h2><p>The account holder can delete the account at any time. The operator may stop an identity that breaks these Terms.</p>
<h2>Changes</h2><p>A new version has a new number and the day from which the console asks for it. The API goes on meanwhile.</p></div>`

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
  const elsewhere = url._tag === "Some" ? HttpServerResponse.redirect(url.value, { status: 302 }) : undefined
  return HttpRouter.add(
    "GET",
    "/terms",
    Effect.map(language, (lang) => elsewhere ?? pages[lang]),
  )
}
