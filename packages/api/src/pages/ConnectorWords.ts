/** The page that a platform sends the browser back to, in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"

export interface ConnectorWords {
  readonly connect: string
  readonly connected: string
  readonly almost: string
  readonly declined: string
  readonly failed: string
  readonly invalid: string
  readonly nothing: string
  readonly again: string
  readonly hand: string
  readonly orSignIn: string
  readonly signIn: string
  readonly platform: string
  readonly identity: string
  readonly disclose: string
  readonly isDisclosed: string
  readonly isUndisclosed: string
  readonly button: string
  readonly back: string
}

export const words: { readonly [L in Language]: ConnectorWords } = {
  en: {
    connect: "Connect this account?",
    connected: "The account is connected",
    almost: "Almost done",
    declined: "The account was not connected",
    failed: "The account was not connected",
    invalid: "This authorization does not work any more",
    nothing: "Nothing was changed. The platform said:",
    again: "It is unknown, was used already, or has expired. Begin again where you came from.",
    hand: "Give this address to the agent or the terminal that asked you; it works once and for 15 minutes.",
    orSignIn: "Or sign in here, and then load this page again.",
    signIn: "Sign in",
    platform: "Platform",
    identity: "Identity",
    disclose: "Say on the account's profile that it is automated",
    isDisclosed: "Its profile says that it is automated.",
    isUndisclosed: "Its profile does not say that it is automated.",
    button: "Connect",
    back: "Back to the service",
  },
  de: {
    connect: "Dieses Konto verbinden?",
    connected: "Das Konto ist verbunden",
    almost: "Fast fertig",
    declined: "Das Konto wurde nicht verbunden",
    failed: "Das Konto wurde nicht verbunden",
    invalid: "Diese Freigabe gilt nicht mehr",
    nothing: "Es wurde nichts geändert. Die Plattform sagte:",
    again:
      "Sie ist unbekannt, wurde schon benutzt oder ist abgelaufen. Beginnen Sie dort noch einmal, woher Sie kamen.",
    hand: "Geben Sie diese Adresse dem Agenten oder dem Terminal, das Sie gebeten hat; sie gilt einmal und 15 Minuten lang.",
    orSignIn: "Oder melden Sie sich hier an und laden Sie diese Seite dann neu.",
    signIn: "Anmelden",
    platform: "Plattform",
    identity: "Identität",
    disclose: "Im Profil des Kontos angeben, dass es automatisiert ist",
    isDisclosed: "Sein Profil sagt, dass es automatisiert ist.",
    isUndisclosed: "Sein Profil sagt nicht, dass es automatisiert ist.",
    button: "Verbinden",
    back: "Zurück zum Dienst",
  },
  fr: {
    connect: "Connecter ce compte ?",
    connected: "Le compte est connecté",
    almost: "Presque terminé",
    declined: "Le compte n'a pas été connecté",
    failed: "Le compte n'a pas été connecté",
    invalid: "Cette autorisation n'est plus valable",
    nothing: "Rien n'a été modifié. La plateforme a répondu :",
    again: "Elle est inconnue, déjà utilisée ou expirée. Recommencez là d'où vous veniez.",
    hand: "Donnez cette adresse à l'agent ou au terminal qui vous a sollicité ; elle fonctionne une seule fois, pendant 15 minutes.",
    orSignIn: "Ou connectez-vous ici, puis rechargez cette page.",
    signIn: "Se connecter",
    platform: "Plateforme",
    identity: "Identité",
    disclose: "Indiquer sur le profil du compte qu'il est automatisé",
    isDisclosed: "Son profil indique qu'il est automatisé.",
    isUndisclosed: "Son profil n'indique pas qu'il est automatisé.",
    button: "Connecter",
    back: "Retour au service",
  },
}
