/** Describes an Event in one sentence, with names, in English, German and French. */
import type { EventType } from "./Event.ts"
import { fill, inLanguage, type InThree, quoted, said, type SentenceLanguage } from "../Phrases.ts"

type Data = Readonly<Record<string, unknown>>

/** Replacements for placeholders whose value the Event lacks. */
const unknowns = {
  somebody: ["somebody", "jemandem", "quelqu’un"],
  audience: ["another service", "einen anderen Dienst", "un autre service"],
  holder: ["the account holder", "der Kontoinhaber", "le titulaire du compte"],
  admin: ["an Admin Key", "ein Admin Key", "une clé Admin"],
  own: ["its own key", "der eigene Schlüssel", "sa propre clé"],
  app: ["an app", "eine App", "une application"],
  service: ["the service", "der Dienst", "le service"],
} as const satisfies Readonly<Record<string, InThree>>

/** Sentences by type. `{h}` is the Handle; the other placeholders are members of the data (see {@link placesOf}). */
const sentences = {
  "identity.ready": ["{h} is ready", "{h} ist bereit", "{h} est prête"],
  "identity.failed": [
    "{h} could not be set up{error}",
    "{h} konnte nicht eingerichtet werden{error}",
    "{h} n’a pas pu être créée{error}",
  ],
  "identity.deleted": ["{h} was deleted", "{h} wurde gelöscht", "{h} a été supprimée"],
  "email.received": [
    "{h} received an email from {from}{subject}",
    "{h} hat eine E-Mail von {from} erhalten{subject}",
    "{h} a reçu un message de {from}{subject}",
  ],
  "email.agent_verified": [
    "An email to {h} is verified as mail of the agent {from}",
    "Eine E-Mail an {h} stammt nachweislich vom Agenten {from}",
    "Un message à {h} provient bien de l’agent {from}",
  ],
  "email.sent": [
    "{h} sent an email to {to}{subject}",
    "{h} hat eine E-Mail an {to} gesendet{subject}",
    "{h} a envoyé un message à {to}{subject}",
  ],
  "email.bounced": [
    "An email from {h} to {recipient} bounced{diagnostic}",
    "Eine E-Mail von {h} an {recipient} kam zurück{diagnostic}",
    "Un message de {h} à {recipient} est revenu{diagnostic}",
  ],
  "email.refused": [
    "{h} rejected mail from {from}{full}",
    "{h} hat E-Mails von {from} abgewiesen{full}",
    "{h} a refusé des e-mails de {from}{full}",
  ],
  "email.recipient_blocked": [
    "{h} was not allowed to write to {recipients}{subject}",
    "{h} durfte nicht an {recipients} schreiben{subject}",
    "{h} n’a pas eu le droit d’écrire à {recipients}{subject}",
  ],
  "email.approval_requested": [
    "{h} asks for approval of an email to {to}{subject}",
    "{h} bittet um Freigabe einer E-Mail an {to}{subject}",
    "{h} demande l’approbation d’un message à {to}{subject}",
  ],
  "email.approved": [
    "An email from {h} was approved by {by}",
    "Eine E-Mail von {h} wurde freigegeben: {by}",
    "Un message de {h} a été approuvé par {by}",
  ],
  "email.approval_refused": [
    "An email from {h} was rejected by {by}{reason}",
    "Eine E-Mail von {h} wurde abgelehnt: {by}{reason}",
    "Un message de {h} a été rejeté par {by}{reason}",
  ],
  "mail.stopped": [
    "Outgoing mail of {h} was stopped by {by}{reason}",
    "Der Versand von {h} wurde gestoppt: {by}{reason}",
    "L’envoi d’e-mails de {h} a été suspendu par {by}{reason}",
  ],
  "mail.started": [
    "Outgoing mail of {h} was resumed by {by}",
    "Der Versand von {h} wurde fortgesetzt: {by}",
    "L’envoi d’e-mails de {h} a été repris par {by}",
  ],
  "proof.key_added": [
    "{h} registered the signing key {kid}",
    "{h} hat den Signierschlüssel {kid} registriert",
    "{h} a enregistré la clé de signature {kid}",
  ],
  "proof.key_removed": [
    "The signing key {kid} of {h} was removed",
    "Der Signierschlüssel {kid} von {h} wurde entfernt",
    "La clé de signature {kid} de {h} a été retirée",
  ],
  "proof.key_rotated": [
    "The signing key of {h} was rotated",
    "Der Signierschlüssel von {h} wurde erneuert",
    "La clé de signature de {h} a été renouvelée",
  ],
  "proof.token_refused": [
    "{h} was refused a token for {audience}",
    "{h} durfte kein Token für {audience} erhalten",
    "{h} n’a pas obtenu de jeton pour {audience}",
  ],
  "identity.sign_in_requested": [
    "{h} asks for approval to sign in at {site}",
    "{h} bittet um Freigabe der Anmeldung bei {site}",
    "{h} demande l’approbation d’une connexion à {site}",
  ],
  "identity.sign_in_approved": [
    "The sign-in of {h} at {site} was approved by {by}",
    "Die Anmeldung von {h} bei {site} wurde freigegeben: {by}",
    "La connexion de {h} à {site} a été approuvée par {by}",
  ],
  "identity.sign_in_refused": [
    "The sign-in of {h} at {site} was refused by {by}",
    "Die Anmeldung von {h} bei {site} wurde abgelehnt: {by}",
    "La connexion de {h} à {site} a été refusée par {by}",
  ],
  "identity.signed_in": [
    "{h} signed in at {site}",
    "{h} hat sich bei {site} angemeldet",
    "{h} s’est connectée à {site}",
  ],
  "card.updated": [
    "{h} changed its card{changed}",
    "{h} hat die Karte geändert{changed}",
    "{h} a modifié sa carte{changed}",
  ],
  "tunnel.connected": ["{h} opened its tunnel", "{h} hat den Tunnel geöffnet", "{h} a ouvert son tunnel"],
  "tunnel.disconnected": ["{h} closed its tunnel", "{h} hat den Tunnel geschlossen", "{h} a fermé son tunnel"],
  "webhook.failed": [
    "A Webhook of {h} did not receive {event_type} despite all retries{failure}",
    "Ein Webhook von {h} hat {event_type} trotz aller Versuche nicht erhalten{failure}",
    "Un webhook de {h} n’a pas reçu {event_type} malgré tous les essais{failure}",
  ],
  "connector.connected": [
    "{h} connected {account} on {platform}",
    "{h} hat {account} bei {platform} verbunden",
    "{h} a connecté {account} sur {platform}",
  ],
  "connector.stopped": [
    "{h} lost access to {account} on {platform}{error}",
    "{h} hat den Zugang zu {account} bei {platform} verloren{error}",
    "{h} a perdu l’accès à {account} sur {platform}{error}",
  ],
  "connector.recovered": [
    "{h} has access to {account} on {platform} again",
    "{h} hat wieder Zugang zu {account} bei {platform}",
    "{h} a de nouveau accès à {account} sur {platform}",
  ],
  "connector.mention": [
    "{author} mentioned {h} on {platform}{post}",
    "{author} hat {h} bei {platform} erwähnt{post}",
    "{author} a mentionné {h} sur {platform}{post}",
  ],
  "connector.reply": [
    "{author} replied to {h} on {platform}{post}",
    "{author} hat {h} bei {platform} geantwortet{post}",
    "{author} a répondu à {h} sur {platform}{post}",
  ],
  "connector.dm": [
    "{author} sent {h} a direct message on {platform}{post}",
    "{author} hat {h} bei {platform} eine Direktnachricht gesendet{post}",
    "{author} a envoyé un message privé à {h} sur {platform}{post}",
  ],
  "tunnel.transfer_blocked": [
    "Today’s data transfer of the tunnels is used up",
    "Das heutige Datenvolumen der Tunnel ist aufgebraucht",
    "Le volume de données du jour des tunnels est épuisé",
  ],
  "api_key.created": ["The key {name} was created", "Der Schlüssel {name} wurde erstellt", "La clé {name} a été créée"],
  "api_key.revoked": [
    "The key {name} was revoked",
    "Der Schlüssel {name} wurde widerrufen",
    "La clé {name} a été révoquée",
  ],
  "api_key.rotated": [
    "The key {name} was rotated",
    "Der Schlüssel {name} wurde erneuert",
    "La clé {name} a été renouvelée",
  ],
  "api_key.expiring": [
    "The key {name} expires on {day}",
    "Der Schlüssel {name} läuft am {day} ab",
    "La clé {name} expire le {day}",
  ],
  "api_key.expired": ["The key {name} has expired", "Der Schlüssel {name} ist abgelaufen", "La clé {name} a expiré"],
  "grant.created": [
    "The app {client} was connected",
    "Die App {client} wurde verbunden",
    "L’application {client} a été connectée",
  ],
  "grant.changed": [
    "The access of the app {client} was changed",
    "Der Zugriff der App {client} wurde geändert",
    "L’accès de l’application {client} a été modifié",
  ],
  "grant.revoked": [
    "The access of the app {client} was revoked",
    "Der Zugriff der App {client} wurde widerrufen",
    "L’accès de l’application {client} a été révoqué",
  ],
  "limit.near": [
    "80% of a limit is used: {limit}",
    "80 % eines Limits sind verbraucht: {limit}",
    "80 % d’une limite sont utilisés : {limit}",
  ],
  "audit.gap": [
    "{count} records of the audit log were lost",
    "{count} Einträge des Audit-Protokolls gingen verloren",
    "{count} entrées du journal d’audit ont été perdues",
  ],
  "audit.head": [
    "The end of the audit log was signed",
    "Das Ende des Audit-Protokolls wurde signiert",
    "La fin du journal d’audit a été signée",
  ],
  "account.deletion_started": [
    "The account is being deleted",
    "Das Konto wird gelöscht",
    "Le compte est en cours de suppression",
  ],
} as const satisfies { readonly [T in EventType]: InThree }

const limits: Readonly<Record<string, InThree>> = {
  identity_quota: ["Identities", "Identitäten", "identités"],
  mail_hourly: ["emails per hour", "E-Mails pro Stunde", "messages par heure"],
  tunnel_transfer: [
    "tunnel data transfer per day",
    "Datenvolumen der Tunnel pro Tag",
    "volume de données des tunnels par jour",
  ],
  mailbox_bytes: ["Mailbox size", "Größe des Postfachs", "taille de la boîte mail"],
}

const byKinds: Readonly<Record<string, InThree>> = {
  session: unknowns.holder,
  admin_key: unknowns.admin,
  identity_key: unknowns.own,
  grant: unknowns.app,
  system: unknowns.service,
}

const isObject = (value: unknown): value is Data => typeof value === "object" && value !== null
const addressOf = (value: unknown): string => said(isObject(value) ? value["address"] : value)

/** Returns the first recipient and the number of the others. */
const firstOf = (value: unknown): string => {
  const all = Array.isArray(value) ? value.map(addressOf).filter((one) => one !== "") : []
  return all.length > 1 ? `${all[0]} +${all.length - 1}` : (all[0] ?? "")
}

/** Returns the values of the placeholders. `mark` sets values apart that users chose. */
const placesOf = (
  language: SentenceLanguage,
  handle: unknown,
  data: Data,
  mark: (value: string) => string,
): Readonly<Record<string, string>> => {
  const say = (texts: InThree) => inLanguage(language, texts)
  const colon = say([": ", ": ", "\u00a0: "])
  /** Returns the value with a leading colon, or an empty text. */
  const after = (value: unknown) => (said(value) === "" ? "" : `${colon}${mark(said(value))}`)
  const or = (value: string, otherwise: InThree) => (value === "" ? say(otherwise) : mark(value))
  const post = isObject(data["post"]) ? data["post"] : {}
  const limit = said(data["limit"])
  return {
    h: mark(said(handle ?? data["handle"])),
    from: or(addressOf(data["from"]), unknowns.somebody),
    to: or(firstOf(data["to"]) || firstOf(data["cc"]) || firstOf(data["bcc"]), unknowns.somebody),
    recipient: or(addressOf(data["recipient"]), unknowns.somebody),
    recipients: or(firstOf(data["recipients"]), unknowns.somebody),
    by: say(byKinds[said(data["by"])] ?? unknowns.service),
    subject: after(data["subject"]),
    reason: after(data["reason"]),
    error: after(data["error"]),
    diagnostic: after(data["diagnostic"]),
    full:
      data["reason"] === "full"
        ? say([": the Mailbox is full", ": das Postfach ist voll", "\u00a0: la boîte mail est pleine"])
        : say([": too large", ": zu groß", "\u00a0: trop volumineux"]),
    kid: mark(said(data["kid"])),
    audience: or(said(data["audience"]), unknowns.audience),
    site: mark(said(data["site"])),
    changed: Array.isArray(data["changed"]) ? after(data["changed"].join(", ")) : "",
    event_type: said(data["event_type"]),
    failure: data["error"] == null ? after(String(data["status_code"] ?? "")) : after(data["error"]),
    account: mark(said(data["account"])),
    platform: said(data["platform"]).replace(/^./, (letter) => letter.toUpperCase()),
    author: or(said(post["author"]), unknowns.somebody),
    post: after(post["text"]),
    name: mark(quoted(language, said(data["name"]))),
    client: mark(quoted(language, said(data["client_name"]))),
    day: said(data["expires_at"]).slice(0, 10),
    limit: say(limits[limit] ?? [limit, limit, limit]),
    count: String(data["count"] ?? ""),
  }
}

/** Returns the sentence of an Event. An unknown type, as a newer version may store it, is shown by its name. */
export const eventSentence = (
  language: SentenceLanguage,
  event: { readonly type?: unknown; readonly handle?: unknown; readonly data?: unknown },
  mark: (value: string) => string = (value) => value,
): string => {
  const type = typeof event.type === "string" ? event.type : ""
  if (!Object.hasOwn(sentences, type)) return said(event.handle) === "" ? type : `${mark(said(event.handle))} ${type}`
  const texts = sentences[type as EventType]
  return fill(
    inLanguage(language, texts),
    placesOf(language, event.handle, isObject(event.data) ? event.data : {}, mark),
  )
}
