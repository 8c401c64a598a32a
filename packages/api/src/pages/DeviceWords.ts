/** Confirming a device, in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"
import type { DeviceStatus } from "@svc/domain/account/Device"

type Told = readonly [title: string, text: string]

export interface DeviceWords {
  readonly title: string
  readonly type: string
  readonly code: string
  readonly proceed: string
  readonly unknown: string
  readonly ask: string
  readonly keyName: string
  readonly askedBy: string
  readonly notSaid: string
  readonly account: string
  readonly care: string
  readonly may: string
  readonly everything: string
  readonly readOnly: string
  readonly until: string
  readonly days: (days: number) => string
  readonly revoked: string
  readonly approve: string
  readonly deny: string
  readonly approved: Told
  readonly denied: Told
  readonly nothingChosen: Told
  readonly later: Told
  readonly settled: { readonly [S in Exclude<DeviceStatus, "pending">]: string }
  readonly anew: string
}

export const words: { readonly [L in Language]: DeviceWords } = {
  en: {
    title: "Confirm a device",
    type: "Type the code that the terminal shows.",
    code: "Code",
    proceed: "Continue",
    unknown: "No device asks with this code.",
    ask: "Give this device an Admin Key?",
    keyName: "Key name",
    askedBy: "Asked by",
    notSaid: "not said",
    account: "Account",
    care: "Approve only if the code is the one your own terminal shows.",
    may: "It may",
    everything: "do everything an Admin Key may",
    readOnly: "read only, and no secret values",
    until: "Until",
    days: (days) => (days === 1 ? "1 day" : `${days} days`),
    revoked: "it is revoked",
    approve: "Approve",
    deny: "Deny",
    approved: ["Approved", "The terminal has its key in a moment. You can close this page."],
    denied: ["Denied", "No key was made. You can close this page."],
    nothingChosen: ["It may do nothing", "Go back and leave it something, or deny it."],
    later: ["Not just now", "Try again in a moment."],
    settled: {
      approved: "This login is approved",
      denied: "This login is denied",
      collected: "This login is collected",
      expired: "This login is expired",
    },
    anew: "Start a new one in the terminal.",
  },
  de: {
    title: "Gerät bestätigen",
    type: "Gib den Code ein, den das Terminal zeigt.",
    code: "Code",
    proceed: "Weiter",
    unknown: "Mit diesem Code fragt kein Gerät.",
    ask: "Diesem Gerät einen Admin Key geben?",
    keyName: "Name des Schlüssels",
    askedBy: "Gefragt von",
    notSaid: "nicht angegeben",
    account: "Konto",
    care: "Bestätige nur, wenn dein eigenes Terminal diesen Code zeigt.",
    may: "Er darf",
    everything: "alles, was ein Admin Key darf",
    readOnly: "nur lesen, und keine geheimen Werte",
    until: "Bis",
    days: (days) => (days === 1 ? "1 Tag" : `${days} Tage`),
    revoked: "er widerrufen wird",
    approve: "Bestätigen",
    deny: "Ablehnen",
    approved: ["Bestätigt", "Das Terminal hat gleich seinen Schlüssel. Du kannst diese Seite schließen."],
    denied: ["Abgelehnt", "Es wurde kein Schlüssel gemacht. Du kannst diese Seite schließen."],
    nothingChosen: ["Er darf nichts", "Geh zurück und lass ihm etwas, oder lehne ab."],
    later: ["Gerade nicht", "Versuche es gleich noch einmal."],
    settled: {
      approved: "Diese Anmeldung ist bestätigt",
      denied: "Diese Anmeldung ist abgelehnt",
      collected: "Diese Anmeldung ist abgeschlossen",
      expired: "Diese Anmeldung ist abgelaufen",
    },
    anew: "Beginne im Terminal eine neue.",
  },
  fr: {
    title: "Confirmer un appareil",
    type: "Saisissez le code qu’affiche le terminal.",
    code: "Code",
    proceed: "Continuer",
    unknown: "Aucun appareil ne demande avec ce code.",
    ask: "Donner une clé Admin à cet appareil ?",
    keyName: "Nom de la clé",
    askedBy: "Demandé par",
    notSaid: "non précisé",
    account: "Compte",
    care: "N’approuvez que si votre propre terminal affiche ce code.",
    may: "Elle peut",
    everything: "faire tout ce que peut une clé Admin",
    readOnly: "lire seulement, et aucune valeur secrète",
    until: "Jusqu’à",
    days: (days) => (days === 1 ? "1 jour" : `${days} jours`),
    revoked: "sa révocation",
    approve: "Approuver",
    deny: "Refuser",
    approved: ["Approuvé", "Le terminal aura sa clé dans un instant. Vous pouvez fermer cette page."],
    denied: ["Refusé", "Aucune clé n’a été créée. Vous pouvez fermer cette page."],
    nothingChosen: ["Elle ne peut rien faire", "Revenez et laissez-lui quelque chose, ou refusez."],
    later: ["Pas pour l’instant", "Réessayez dans un moment."],
    settled: {
      approved: "Cette connexion est approuvée",
      denied: "Cette connexion est refusée",
      collected: "Cette connexion est terminée",
      expired: "Cette connexion a expiré",
    },
    anew: "Commencez-en une nouvelle dans le terminal.",
  },
}
