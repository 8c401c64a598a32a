/** Short descriptions of Event types. */
import type { EventType } from "@svc/domain/events/Event"
import { type InAll, texts } from "./Texts.ts"

/** The compiler checks that every type is listed. */
const words = {
  "identity.ready": ["is ready", "ist bereit", "est prête"],
  "identity.failed": ["could not be set up", "konnte nicht eingerichtet werden", "n’a pas pu être créée"],
  "identity.deleted": ["was deleted", "wurde gelöscht", "a été supprimée"],
  "email.received": ["received an email", "hat eine E-Mail erhalten", "a reçu un e-mail"],
  "email.agent_verified": ["has mail from an agent", "hat E-Mail von einem Agenten", "a un e-mail d’un agent"],
  "email.sent": ["sent an email", "hat eine E-Mail gesendet", "a envoyé un e-mail"],
  "email.bounced": ["has a bounced email", "hat eine unzustellbare E-Mail", "a un e-mail non distribué"],
  "email.refused": ["rejected an email", "hat eine E-Mail abgewiesen", "a rejeté un e-mail"],
  "email.recipient_blocked": [
    "tried to write to a recipient that is not allowed",
    "wollte an einen nicht erlaubten Empfänger schreiben",
    "a tenté d’écrire à un destinataire non autorisé",
  ],
  "email.approval_requested": [
    "requests approval of an email",
    "bittet um Freigabe einer E-Mail",
    "demande l’approbation d’un e-mail",
  ],
  "email.approved": ["has an approved email", "hat eine freigegebene E-Mail", "a un e-mail approuvé"],
  "email.approval_refused": ["has a rejected email", "hat eine abgelehnte E-Mail", "a un e-mail refusé"],
  "mail.stopped": ["has outgoing mail stopped", "sendet keine E-Mails mehr", "n’envoie plus d’e-mails"],
  "mail.started": ["has outgoing mail resumed", "sendet wieder E-Mails", "envoie de nouveau des e-mails"],
  "proof.key_added": [
    "registered a signing key",
    "hat einen Signierschlüssel registriert",
    "a enregistré une clé de signature",
  ],
  "proof.key_removed": ["signing key removed", "Signierschlüssel entfernt", "clé de signature retirée"],
  "proof.key_rotated": ["signing key rotated", "Signierschlüssel erneuert", "clé de signature renouvelée"],
  "proof.token_refused": ["was refused a token", "hat kein Token erhalten", "n’a pas obtenu de jeton"],
  "identity.sign_in_requested": ["sign-in awaits approval", "Anmeldung wartet auf Freigabe", "connexion à approuver"],
  "identity.sign_in_approved": ["sign-in approved", "Anmeldung freigegeben", "connexion approuvée"],
  "identity.sign_in_refused": ["sign-in refused", "Anmeldung abgelehnt", "connexion refusée"],
  "identity.signed_in": ["signed in at a site", "bei einer Website angemeldet", "connexion à un site"],
  "card.updated": ["changed its card", "hat die Karte geändert", "a modifié sa carte"],
  "tunnel.connected": ["opened its tunnel", "hat den Tunnel geöffnet", "a ouvert son tunnel"],
  "tunnel.disconnected": ["closed its tunnel", "hat den Tunnel geschlossen", "a fermé son tunnel"],
  "webhook.failed": [
    "has a failed Webhook delivery",
    "hat eine fehlgeschlagene Webhook-Zustellung",
    "a une livraison de webhook en échec",
  ],
  "connector.connected": ["connected an account", "hat ein Konto verbunden", "a connecté un compte"],
  "connector.stopped": [
    "lost access to an account",
    "hat den Zugang zu einem Konto verloren",
    "a perdu l’accès à un compte",
  ],
  "connector.recovered": [
    "regained access to an account",
    "hat wieder Zugang zu einem Konto",
    "a retrouvé l’accès à un compte",
  ],
  "connector.mention": ["was mentioned", "wurde erwähnt", "a été mentionnée"],
  "connector.reply": ["received a reply", "hat eine Antwort erhalten", "a reçu une réponse"],
  "connector.dm": ["received a direct message", "hat eine Direktnachricht erhalten", "a reçu un message privé"],
  "tunnel.transfer_blocked": [
    "Daily data transfer of tunnels used up",
    "Tägliches Datenvolumen der Tunnel aufgebraucht",
    "Volume de données quotidien des tunnels épuisé",
  ],
  "api_key.created": ["API key created", "API-Schlüssel erstellt", "Clé d’API créée"],
  "api_key.revoked": ["API key revoked", "API-Schlüssel widerrufen", "Clé d’API révoquée"],
  "grant.created": ["App connected", "App verbunden", "Application connectée"],
  "grant.changed": ["Access of an app changed", "Zugriff einer App geändert", "Accès d’une application modifié"],
  "grant.revoked": ["Access of an app revoked", "Zugriff einer App widerrufen", "Accès d’une application révoqué"],
  "api_key.rotated": ["API key rotated", "API-Schlüssel erneuert", "Clé d’API renouvelée"],
  "api_key.expiring": ["API key expires soon", "API-Schlüssel läuft bald ab", "Clé d’API bientôt expirée"],
  "api_key.expired": ["API key expired", "API-Schlüssel abgelaufen", "Clé d’API expirée"],
  "limit.near": ["80% of a limit used", "80 % eines Limits verbraucht", "80 % d’une limite utilisés"],
  "audit.gap": ["Audit records lost", "Audit-Einträge verloren", "Entrées d’audit perdues"],
  "audit.head": ["Audit log signed", "Audit-Protokoll signiert", "Journal d’audit signé"],
  "account.deletion_started": [
    "Account deletion started",
    "Löschung des Kontos begonnen",
    "Suppression du compte commencée",
  ],
} as const satisfies { readonly [T in EventType]: InAll }

export const eventTypes = Object.keys(words) as ReadonlyArray<EventType>

const sayEvent = texts(words)

/** Returns the description of a type, or the type if it is newer than the console. */
export const wordsOf = (type: string): string => (type in words ? sayEvent(type as EventType) : type)
