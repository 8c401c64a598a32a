/** Asking for a link, in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"

/** What somebody signs in for: the account itself, a device that waits for them, or an app. */
export type Purpose = "account" | "device" | "app"

export interface SignInWords {
  readonly title: string
  readonly heading: { readonly [P in Purpose]: string }
  readonly email: string
  readonly terms: readonly [before: string, link: string, after: string]
  readonly button: string
  readonly sent: string
  /** The address comes escaped. */
  readonly sentTo: (email: string) => string
  readonly open: { readonly [P in Purpose]: string }
  /** Only where no mail is needed. */
  readonly development: string
  readonly elsewhere: string
  readonly noAddress: string
  readonly needsTerms: string
  readonly needsInvite: string
  readonly tooMany: string
  readonly later: string
}

export const words: { readonly [L in Language]: SignInWords } = {
  en: {
    title: "Sign in",
    heading: {
      account: "Sign in or sign up",
      device: "Sign in to confirm a device",
      app: "Sign in to connect an app",
    },
    email: "Your email address",
    terms: ["I accept the", "Terms of Service", "(needed the first time)"],
    button: "Mail me a link",
    sent: "Look into your mail",
    sentTo: (email) => `A link is on its way to ${email}.`,
    open: {
      account: "Open it to sign in.",
      device: "Open it to sign in and confirm the device.",
      app: "Open it to sign in and connect the app, in this browser.",
    },
    development: "open the link",
    elsewhere: "Send the form from this page.",
    noAddress: "That is no email address.",
    needsTerms: "The first time, the Terms must be accepted.",
    needsInvite: "Sign-up needs an invitation. Existing accounts sign in without one.",
    tooMany: "Too many links were asked for. Wait a while.",
    later: "Not just now. Try again in a moment.",
  },
  de: {
    title: "Anmelden",
    heading: {
      account: "Anmelden oder registrieren",
      device: "Anmelden, um ein Gerät zu bestätigen",
      app: "Anmelden, um eine App zu verbinden",
    },
    email: "Deine E-Mail-Adresse",
    terms: ["Ich akzeptiere die", "Nutzungsbedingungen", "(beim ersten Mal nötig)"],
    button: "Link zusenden",
    sent: "Schau in deine Mail",
    sentTo: (email) => `Ein Link ist unterwegs zu ${email}.`,
    open: {
      account: "Öffne ihn, um dich anzumelden.",
      device: "Öffne ihn, um dich anzumelden und das Gerät zu bestätigen.",
      app: "Öffne ihn in diesem Browser, um dich anzumelden und die App zu verbinden.",
    },
    development: "Link öffnen",
    elsewhere: "Sende das Formular von dieser Seite aus.",
    noAddress: "Das ist keine E-Mail-Adresse.",
    needsTerms: "Beim ersten Mal müssen die Nutzungsbedingungen akzeptiert werden.",
    needsInvite: "Zum Registrieren braucht es eine Einladung. Bestehende Konten melden sich ohne an.",
    tooMany: "Es wurden zu viele Links angefordert. Warte eine Weile.",
    later: "Gerade nicht. Versuche es gleich noch einmal.",
  },
  fr: {
    title: "Se connecter",
    heading: {
      account: "Se connecter ou s’inscrire",
      device: "Se connecter pour confirmer un appareil",
      app: "Se connecter pour relier une application",
    },
    email: "Votre adresse e-mail",
    terms: ["J’accepte les", "conditions d’utilisation", "(nécessaire la première fois)"],
    button: "M’envoyer un lien",
    sent: "Consultez votre courrier",
    sentTo: (email) => `Un lien est en route vers ${email}.`,
    open: {
      account: "Ouvrez-le pour vous connecter.",
      device: "Ouvrez-le pour vous connecter et confirmer l’appareil.",
      app: "Ouvrez-le dans ce navigateur pour vous connecter et relier l’application.",
    },
    development: "ouvrir le lien",
    elsewhere: "Envoyez le formulaire depuis cette page.",
    noAddress: "Ce n’est pas une adresse e-mail.",
    needsTerms: "La première fois, il faut accepter les conditions d’utilisation.",
    needsInvite: "Il faut une invitation pour s’inscrire. Les comptes existants se connectent sans.",
    tooMany: "Trop de liens ont été demandés. Patientez un peu.",
    later: "Pas pour l’instant. Réessayez dans un moment.",
  },
}
