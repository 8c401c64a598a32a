/** Titles of problems in German and French. Details are in English, because they name request values. */
import type { Code } from "@svc/domain/problems/Table"
import type { Problem } from "../client/Client.ts"
import { language } from "../texts/Texts.ts"

/** Problems that a browser can meet; English titles come with the response. */
const titles: { readonly [K in Code]?: readonly [de: string, fr: string] } = {
  invalid_request: ["Die Eingabe ist nicht gültig", "La saisie n’est pas valide"],
  invalid_cursor: ["Diese Stelle der Liste gibt es nicht mehr", "Cet endroit de la liste n’existe plus"],
  not_found: ["Das gibt es nicht (mehr)", "Cela n’existe pas (ou plus)"],
  payload_too_large: ["Die Eingabe ist zu groß", "La saisie est trop grande"],
  conflict: ["Das verträgt sich nicht mit dem jetzigen Stand", "Cela contredit l’état actuel"],
  precondition_failed: ["Es wurde inzwischen geändert", "Cela a été modifié entre-temps"],
  rate_limited: ["Zu viele Aufrufe", "Trop d’appels"],
  unavailable: ["Ein Teil des Dienstes ist nicht erreichbar", "Une partie du service est injoignable"],
  internal: ["Bei uns ist etwas schiefgegangen", "Une erreur s’est produite chez nous"],
  unauthenticated: ["Du bist nicht angemeldet", "Vous n’êtes pas connecté"],
  account_deleting: ["Das Konto wird gelöscht", "Le compte est en cours de suppression"],
  session_required: ["Dafür braucht es eine Anmeldung in der Konsole", "Il faut être connecté à la console"],
  admin_required: ["Das darf nur der Kontoinhaber", "Seul le titulaire du compte le peut"],
  invite_required: ["Zum Registrieren braucht es eine Einladung", "Il faut une invitation pour s’inscrire"],
  tos_not_accepted: ["Die Nutzungsbedingungen müssen akzeptiert werden", "Les conditions doivent être acceptées"],
  tos_version_mismatch: [
    "Diese Fassung der Bedingungen gilt nicht mehr",
    "Cette version des conditions n’est plus la bonne",
  ],
  magic_link_invalid: ["Der Link gilt nicht mehr", "Le lien n’est plus valable"],
  device_authorization_settled: ["Diese Anmeldung ist schon entschieden", "Cette demande est déjà tranchée"],
  confirmation_mismatch: ["Die Bestätigung stimmt nicht", "La confirmation ne correspond pas"],
  handle_taken: ["Der Name ist vergeben", "Le nom est pris"],
  handle_reserved: ["Der Name ist reserviert", "Le nom est réservé"],
  handle_invalid: ["Der Name ist nicht gültig", "Le nom n’est pas valide"],
  identity_busy: ["Die Identität wird gerade eingerichtet", "L’identité est en cours de création"],
  identity_not_ready: ["Die Identität ist nicht bereit", "L’identité n’est pas prête"],
  identity_quota_exhausted: ["Das Kontingent an Identitäten ist aufgebraucht", "Le quota d’identités est épuisé"],
  recipient_not_allowed: ["Ein Empfänger ist nicht erlaubt", "Un destinataire n’est pas autorisé"],
  content_changed: ["Die Nachricht hat sich geändert", "Le message a changé"],
  mail_relay_unavailable: ["Die Mail konnte nicht übergeben werden", "Le message n’a pas pu être remis"],
  webhook_target_refused: ["Diese Adresse ist als Ziel nicht erlaubt", "Cette adresse n’est pas admise comme cible"],
  webhook_mismatch: ["Der Webhook gehört zu einer anderen Identität", "Le webhook appartient à une autre identité"],
  secret_name_invalid: ["Der Name des Geheimnisses ist nicht gültig", "Le nom du secret n’est pas valide"],
}

export const titleOf = ({ code, title }: Problem): string =>
  language.value === "en" ? title : (titles[code]?.[language.value === "de" ? 0 : 1] ?? title)
