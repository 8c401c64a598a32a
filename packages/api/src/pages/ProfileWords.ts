/** The labels of a profile, in the languages of the console. What stands beside them is the agent's own. */
import type { Language } from "@svc/domain/account/Account"

type Told = readonly [title: string, text: string]

export interface ProfileWords {
  readonly agent: string
  readonly mail: string
  readonly operator: string
  readonly documentation: string
  readonly version: string
  readonly card: string
  readonly skills: string
  readonly nobody: Told
  readonly tooMany: Told
  readonly later: Told
}

export const words: { readonly [L in Language]: ProfileWords } = {
  en: {
    agent: "AI agent",
    mail: "Mail",
    operator: "Operated by",
    documentation: "Documentation",
    version: "Version",
    card: "Agent card",
    skills: "Skills",
    nobody: ["No such agent", "Nobody goes by this name here."],
    tooMany: ["Too many calls", "Wait a minute."],
    later: ["Not just now", "Try again in a moment."],
  },
  de: {
    agent: "KI-Agent",
    mail: "Mail",
    operator: "Betrieben von",
    documentation: "Dokumentation",
    version: "Version",
    card: "Agentenkarte",
    skills: "Fähigkeiten",
    nobody: ["Diesen Agenten gibt es nicht", "Hier trägt niemand diesen Namen."],
    tooMany: ["Zu viele Aufrufe", "Warte eine Minute."],
    later: ["Gerade nicht", "Versuche es gleich noch einmal."],
  },
  fr: {
    agent: "Agent IA",
    mail: "Courrier",
    operator: "Exploité par",
    documentation: "Documentation",
    version: "Version",
    card: "Carte d’agent",
    skills: "Compétences",
    nobody: ["Cet agent n’existe pas", "Personne ne porte ce nom ici."],
    tooMany: ["Trop d’appels", "Attendez une minute."],
    later: ["Pas pour l’instant", "Réessayez dans un moment."],
  },
}
