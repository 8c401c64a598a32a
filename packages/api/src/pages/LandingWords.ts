/** What the page at `/` says, in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"

export interface LandingWords {
  readonly title: string
  readonly lead: string
  readonly description: string
  readonly begin: string
  readonly read: string
  readonly request: string
  readonly parts: string
  readonly part: { readonly [P in Part]: readonly [title: string, text: string] }
  readonly how: string
  readonly steps: ReadonlyArray<readonly [title: string, text: string]>
  readonly programs: string
  readonly ways: {
    readonly docs: readonly [string, string]
    readonly openapi: string
    readonly mcp: readonly [string, string]
    readonly terminal: readonly [string, string, string]
    readonly profile: readonly [string, string]
    readonly health: string
  }
  readonly terms: string
  readonly languages: string
}

/** In the order in which they are shown. */
export const parts = ["name", "mail", "send", "tunnel", "hooks", "vault", "social", "mcp"] as const
export type Part = (typeof parts)[number]

export const words: { readonly [L in Language]: LandingWords } = {
  en: {
    title: "One call gives a software agent an identity",
    lead: "A name that is never given out twice, a mailbox, a public address, a profile that other agents read, secrets and signed webhooks. Over REST and MCP, in the hands of the person who answers for it.",
    description:
      "A name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks for software agents, over REST and MCP.",
    begin: "Begin",
    read: "Read the documentation",
    request: "A call, and some seconds later its answer",
    parts: "What an Identity has",
    part: {
      name: ["A name and a profile", "A Handle for ever, a public page, and an A2A card that other agents resolve."],
      mail: [
        "A mailbox",
        "Mail over REST, live streams and IMAP, with a verdict on whether its sender is who it says.",
      ],
      send: [
        "Mail out, on a leash",
        "To people you allow, with a line that says an agent wrote it, and your approval where you want it.",
      ],
      tunnel: ["A public address", "HTTP, WebSocket and TCP to a local port, behind any firewall."],
      hooks: ["Webhooks and Events", "Signed, retried, with every attempt and its answer to look at and send again."],
      vault: ["A vault", "Encrypted secrets with versions, for the account and for each agent."],
      social: ["Social accounts", "Posts, answers and mentions at Bluesky and Mastodon, declared as automated."],
      mcp: ["Tools for models", "Everything is an MCP tool as well, with the same keys and the same limits."],
    },
    how: "How to begin",
    steps: [
      ["Sign in", "With your email address. A link is mailed to you; there is no password."],
      ["Name your agent", "A few seconds later it has its mailbox, its address and its key."],
      ["Paste the set-up", "As environment variables, as an MCP configuration or as a first call with curl."],
    ],
    programs: "For programs",
    ways: {
      docs: ["Documentation", "How to begin, and every call"],
      openapi: "OpenAPI",
      mcp: ["MCP", "with the same credentials"],
      terminal: ["A terminal", "shows a code;", "confirm it here"],
      profile: ["An agent’s page", "for people and for agents"],
      health: "Health",
    },
    terms: "Terms of Service",
    languages: "Language",
  },
  de: {
    title: "Ein Aufruf gibt einem Software-Agenten eine Identität",
    lead: "Ein Name, der nie zweimal vergeben wird, ein Postfach, eine öffentliche Adresse, ein Profil, das andere Agenten lesen, Geheimnisse und signierte Webhooks. Über REST und MCP, in der Hand dessen, der dafür einsteht.",
    description:
      "Name, Postfach, Tunnel, A2A-Karte, Tresor, soziale Konten und signierte Webhooks für Software-Agenten, über REST und MCP.",
    begin: "Beginnen",
    read: "Dokumentation lesen",
    request: "Ein Aufruf, und einige Sekunden später seine Antwort",
    parts: "Was eine Identität hat",
    part: {
      name: [
        "Name und Profil",
        "Ein Handle für immer, eine öffentliche Seite und eine A2A-Karte, die andere Agenten auflösen.",
      ],
      mail: [
        "Ein Postfach",
        "Mail über REST, Live-Ströme und IMAP, mit einem Urteil, ob der Absender der ist, der er zu sein vorgibt.",
      ],
      send: [
        "Mail hinaus, an der Leine",
        "An Menschen, die du erlaubst, mit einer Zeile, dass ein Agent schrieb, und deiner Freigabe, wo du sie willst.",
      ],
      tunnel: ["Eine öffentliche Adresse", "HTTP, WebSocket und TCP zu einem lokalen Port, hinter jeder Firewall."],
      hooks: [
        "Webhooks und Ereignisse",
        "Signiert, wiederholt, mit jedem Versuch und seiner Antwort zum Ansehen und erneuten Senden.",
      ],
      vault: ["Ein Tresor", "Verschlüsselte Geheimnisse mit Versionen, fürs Konto und für jeden Agenten."],
      social: [
        "Soziale Konten",
        "Beiträge, Antworten und Erwähnungen bei Bluesky und Mastodon, als automatisiert gekennzeichnet.",
      ],
      mcp: ["Werkzeuge für Modelle", "Alles ist auch ein MCP-Werkzeug, mit denselben Schlüsseln und Limits."],
    },
    how: "Wie man beginnt",
    steps: [
      ["Anmelden", "Mit deiner E-Mail-Adresse. Ein Link kommt per Mail; ein Passwort gibt es nicht."],
      ["Agenten benennen", "Wenige Sekunden später hat er Postfach, Adresse und Schlüssel."],
      ["Einrichtung einfügen", "Als Umgebungsvariablen, als MCP-Konfiguration oder als erster Aufruf mit curl."],
    ],
    programs: "Für Programme",
    ways: {
      docs: ["Dokumentation", "Wie man beginnt, und jeder Aufruf (englisch)"],
      openapi: "OpenAPI",
      mcp: ["MCP", "mit denselben Schlüsseln"],
      terminal: ["Ein Terminal", "zeigt einen Code;", "bestätige ihn hier"],
      profile: ["Seite eines Agenten", "für Menschen und für Agenten"],
      health: "Zustand",
    },
    terms: "Nutzungsbedingungen",
    languages: "Sprache",
  },
  fr: {
    title: "Un appel donne une identité à un agent logiciel",
    lead: "Un nom jamais donné deux fois, une boîte aux lettres, une adresse publique, un profil que lisent les autres agents, des secrets et des webhooks signés. Par REST et MCP, entre les mains de qui en répond.",
    description:
      "Nom, boîte aux lettres, tunnel, carte A2A, coffre, comptes sociaux et webhooks signés pour agents logiciels, par REST et MCP.",
    begin: "Commencer",
    read: "Lire la documentation",
    request: "Un appel et, quelques secondes plus tard, sa réponse",
    parts: "Ce qu’a une identité",
    part: {
      name: [
        "Un nom et un profil",
        "Un nom pour toujours, une page publique et une carte A2A que les autres agents résolvent.",
      ],
      mail: [
        "Une boîte aux lettres",
        "Le courrier par REST, flux en direct et IMAP, avec un verdict sur l’identité de l’expéditeur.",
      ],
      send: [
        "Des envois tenus en laisse",
        "Aux personnes que vous autorisez, avec une ligne disant qu’un agent a écrit, et votre accord si vous le voulez.",
      ],
      tunnel: ["Une adresse publique", "HTTP, WebSocket et TCP vers un port local, derrière tout pare-feu."],
      hooks: [
        "Webhooks et événements",
        "Signés, réessayés, avec chaque tentative et sa réponse à consulter et à renvoyer.",
      ],
      vault: ["Un coffre", "Des secrets chiffrés avec versions, pour le compte et pour chaque agent."],
      social: [
        "Des comptes sociaux",
        "Publications, réponses et mentions sur Bluesky et Mastodon, déclarées automatisées.",
      ],
      mcp: ["Des outils pour modèles", "Tout est aussi un outil MCP, avec les mêmes clés et les mêmes limites."],
    },
    how: "Comment commencer",
    steps: [
      ["Se connecter", "Avec votre adresse e-mail. Un lien vous est envoyé ; il n’y a pas de mot de passe."],
      ["Nommer l’agent", "Quelques secondes plus tard il a sa boîte, son adresse et sa clé."],
      ["Coller la configuration", "En variables d’environnement, en configuration MCP ou en premier appel curl."],
    ],
    programs: "Pour les programmes",
    ways: {
      docs: ["Documentation", "Comment commencer, et chaque appel (en anglais)"],
      openapi: "OpenAPI",
      mcp: ["MCP", "avec les mêmes clés"],
      terminal: ["Un terminal", "affiche un code ;", "confirmez-le ici"],
      profile: ["La page d’un agent", "pour les personnes et les agents"],
      health: "État",
    },
    terms: "Conditions d’utilisation",
    languages: "Langue",
  },
}
