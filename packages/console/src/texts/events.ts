/** What happened, in one line each. */
import type { EventType } from "@svc/domain/events/Event"
import { type InAll, texts } from "./Texts.ts"

/** What each Event says in one line. A type that is missing does not compile. */
const words = {
  "identity.ready": ["is ready", "ist bereit", "est prête"],
  "identity.failed": ["could not be set up", "konnte nicht eingerichtet werden", "n’a pas pu être créée"],
  "identity.deleted": ["was deleted", "wurde gelöscht", "a été supprimée"],
  "email.received": ["received a mail", "hat eine Mail erhalten", "a reçu un message"],
  "email.sent": ["sent a mail", "hat eine Mail gesendet", "a envoyé un message"],
  "email.bounced": ["had a mail bounce", "hat eine Mail zurückbekommen", "a un message revenu"],
  "email.refused": ["turned mail away", "hat Mail abgewiesen", "a refusé du courrier"],
  "email.recipient_blocked": [
    "was kept from writing to somebody",
    "durfte jemandem nicht schreiben",
    "n’a pas pu écrire à quelqu’un",
  ],
  "email.approval_requested": [
    "asks to send a mail",
    "bittet, eine Mail senden zu dürfen",
    "demande à envoyer un message",
  ],
  "email.approved": ["may send a mail", "darf eine Mail senden", "peut envoyer un message"],
  "email.approval_refused": ["may not send a mail", "darf eine Mail nicht senden", "ne peut pas envoyer un message"],
  "mail.stopped": ["no longer sends mail", "sendet keine Mail mehr", "n’envoie plus de courrier"],
  "mail.started": ["sends mail again", "sendet wieder Mail", "envoie de nouveau du courrier"],
  "card.updated": ["changed its card", "hat die Karte geändert", "a modifié sa carte"],
  "tunnel.connected": ["opened its tunnel", "hat den Tunnel geöffnet", "a ouvert son tunnel"],
  "tunnel.disconnected": ["closed its tunnel", "hat den Tunnel geschlossen", "a fermé son tunnel"],
  "webhook.failed": ["a Webhook was given up on", "ein Webhook wurde aufgegeben", "un webhook a été abandonné"],
  "connector.connected": ["connected an account", "hat ein Konto verbunden", "a connecté un compte"],
  "connector.stopped": ["lost an account", "hat ein Konto verloren", "a perdu un compte"],
  "connector.recovered": ["got an account back", "hat ein Konto wieder", "a retrouvé un compte"],
  "connector.mention": ["was mentioned", "wurde erwähnt", "a été mentionnée"],
  "connector.reply": ["got a reply", "hat eine Antwort bekommen", "a reçu une réponse"],
  "connector.dm": ["got a direct message", "hat eine Direktnachricht bekommen", "a reçu un message direct"],
  "tunnel.transfer_blocked": [
    "Transfer of all tunnels is used up for today",
    "Der Transfer aller Tunnel ist für heute aufgebraucht",
    "Le transfert des tunnels est épuisé pour aujourd’hui",
  ],
  "api_key.created": ["A key was made", "Ein Schlüssel wurde erstellt", "Une clé a été créée"],
  "api_key.revoked": ["A key was revoked", "Ein Schlüssel wurde widerrufen", "Une clé a été révoquée"],
  "grant.created": ["An app was connected", "Eine App wurde verbunden", "Une application a été connectée"],
  "grant.changed": [
    "What an app may do was changed",
    "Was eine App darf, wurde geändert",
    "Les droits d’une application ont été modifiés",
  ],
  "grant.revoked": [
    "The access of an app has ended",
    "Der Zugang einer App ist beendet",
    "L’accès d’une application est terminé",
  ],
  "api_key.rotated": ["A key was replaced", "Ein Schlüssel wurde ersetzt", "Une clé a été remplacée"],
  "api_key.expiring": ["A key ends soon", "Ein Schlüssel endet bald", "Une clé se termine bientôt"],
  "api_key.expired": ["A key has ended", "Ein Schlüssel ist abgelaufen", "Une clé est terminée"],
  "limit.near": [
    "Four fifths of a limit are used",
    "Vier Fünftel eines Limits sind verbraucht",
    "Quatre cinquièmes d’une limite sont utilisés",
  ],
  "audit.gap": [
    "Records of the audit log were lost",
    "Einträge des Prüfprotokolls gingen verloren",
    "Des entrées du journal d’audit ont été perdues",
  ],
  "audit.head": [
    "The end of the audit log was signed",
    "Das Ende des Prüfprotokolls wurde signiert",
    "La fin du journal d’audit a été signée",
  ],
  "account.deletion_started": [
    "The account is being deleted",
    "Das Konto wird gelöscht",
    "Le compte est en cours de suppression",
  ],
} as const satisfies { readonly [T in EventType]: InAll }

export const eventTypes = Object.keys(words) as ReadonlyArray<EventType>

const sayEvent = texts(words)

/** A type of a newer service is shown by its name. */
export const wordsOf = (type: string): string => (type in words ? sayEvent(type as EventType) : type)
