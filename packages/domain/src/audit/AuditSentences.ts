/**
 * Describes an audit record in one sentence, with names instead of ids, in English, German and French. A sentence
 * consists of a verb and an object; each verb has one form for completed and one for attempted actions.
 */
import { fill, inLanguage, type InThree, quoted, said, type SentenceLanguage } from "../Phrases.ts"
import { verbs } from "./AuditVerbs.ts"

/** The members of an audit record that its sentence uses. */
export interface DescribedRecord {
  readonly action: string
  readonly actor: { readonly kind: string; readonly name: string | null; readonly client: string | null }
  readonly identity: string | null
  readonly target: { readonly type: string; readonly name: string | null } | null
  readonly outcome: string
  readonly count: number
}

/**
 * `{n}` is replaced by the name of the target with a leading space, or by nothing; `{of}` by the Identity if it is
 * another one.
 */
const objects = {
  account: ["the account", "das Konto", "le compte"],
  aiDisclosure: ["the AI disclosure{of}", "die KI-Kennzeichnung{of}", "la mention IA{of}"],
  allowedRecipient: [
    "the allowed recipient{n}{of}",
    "den erlaubten Empfänger{n}{of}",
    "le destinataire autorisé{n}{of}",
  ],
  allMail: ["mail of all Identities", "die E-Mails aller Identitäten", "les e-mails de toutes les identités"],
  app: ["the app{n}", "die App{n}", "l’application{n}"],
  appAccess: ["the access of the app{n}", "den Zugriff der App{n}", "l’accès de l’application{n}"],
  audit: ["the audit log", "das Audit-Protokoll", "le journal d’audit"],
  block: ["the block on the recipient{n}{of}", "die Sperre des Empfängers{n}{of}", "le blocage du destinataire{n}{of}"],
  atSite: [" at{n}{of}", " bei{n}{of}", " à{n}{of}"],
  auditBefore: [
    "the audit log of an earlier version",
    "das Audit-Protokoll einer früheren Version",
    "le journal d’audit d’une version antérieure",
  ],
  byImap: [" to the Mailbox{of} by IMAP", " am Postfach{of} über IMAP", " à la boîte mail{of} par IMAP"],
  bySmtp: [" to the Mailbox{of} by SMTP", " am Postfach{of} über SMTP", " à la boîte mail{of} par SMTP"],
  card: ["the card{of}", "die Karte{of}", "la carte{of}"],
  connector: ["the account on{n}{of}", "das Konto bei{n}{of}", "le compte sur{n}{of}"],
  connectors: ["all connected accounts{of}", "alle verbundenen Konten{of}", "tous les comptes connectés{of}"],
  contact: ["a contact message", "eine Kontaktnachricht", "un message de contact"],
  credentials: ["the first secrets of{n}", "die ersten Zugangsdaten von{n}", "les premiers secrets de{n}"],
  deliveries: [
    "the failed deliveries of a Webhook{of}",
    "die fehlgeschlagenen Zustellungen eines Webhooks{of}",
    "les livraisons échouées d’un webhook{of}",
  ],
  device: ["a device sign-in", "eine Geräteanmeldung", "une connexion d’appareil"],
  directMessage: ["a direct message on{n}{of}", "eine Direktnachricht bei{n}{of}", "un message privé sur{n}{of}"],
  draft: ["a draft{of}", "einen Entwurf{of}", "un brouillon{of}"],
  event: ["an Event{of}", "ein Ereignis{of}", "un événement{of}"],
  export: ["an export", "einen Export", "un export"],
  hit: ["a page view", "einen Seitenaufruf", "une vue de page"],
  identity: ["the Identity{n}", "die Identität{n}", "l’identité{n}"],
  key: ["the key{n}{of}", "den Schlüssel{n}{of}", "la clé{n}{of}"],
  limits: ["the limits", "die Limits", "les limites"],
  mailSettings: ["the mail settings{of}", "die E-Mail-Einstellungen{of}", "les paramètres d’e-mail{of}"],
  mcp: ["the MCP server", "den MCP-Server", "le serveur MCP"],
  message: ["a message{of}", "eine Nachricht{of}", "un message{of}"],
  messages: ["messages{of}", "Nachrichten{of}", "des messages{of}"],
  name: ["a handle", "einen Handle", "un identifiant"],
  nothing: ["", "", ""],
  ownAccess: ["its access", "seinen Zugriff", "son accès"],
  oldSecret: [
    "an earlier version of the secret{n}{of}",
    "eine frühere Version des Geheimnisses{n}{of}",
    "une version antérieure du secret{n}{of}",
  ],
  post: ["a post on{n}{of}", "einen Beitrag bei{n}{of}", "une publication sur{n}{of}"],
  profile: ["the public profile", "das öffentliche Profil", "le profil public"],
  identityToken: ["a token for{n}{of}", "ein Token für{n}{of}", "un jeton pour{n}{of}"],
  requestSignature: ["a signature for{n}{of}", "eine Signatur für{n}{of}", "une signature pour{n}{of}"],
  audiences: ["the allowed services{of}", "die erlaubten Dienste{of}", "les services autorisés{of}"],
  signingKey: ["a signing key{of}", "einen Signierschlüssel{of}", "une clé de signature{of}"],
  secret: ["the secret{n}{of}", "das Geheimnis{n}{of}", "le secret{n}{of}"],
  secretVersions: [
    "the versions of the secret{n}{of}",
    "die Versionen des Geheimnisses{n}{of}",
    "les versions du secret{n}{of}",
  ],
  session: ["a session", "eine Sitzung", "une session"],
  sessions: ["all sessions", "alle Sitzungen", "toutes les sessions"],
  setUp: ["the set-up of{n}", "die Einrichtung von{n}", "la création de{n}"],
  signInLink: ["a sign-in link", "einen Anmeldelink", "un lien de connexion"],
  signingSecret: [
    "the signing secret of the Webhooks{of}",
    "den Signaturschlüssel der Webhooks{of}",
    "le secret de signature des webhooks{of}",
  ],
  proof: ["a proof of an agent", "einen Nachweis eines Agenten", "une preuve d’un agent"],
  siteSignIn: ["the sign-in at{n}{of}", "die Anmeldung bei{n}{of}", "la connexion à{n}{of}"],
  terms: ["the Terms", "die Nutzungsbedingungen", "les conditions"],
  thread: ["a conversation{of}", "eine Unterhaltung{of}", "une conversation{of}"],
  usage: ["the usage", "die Nutzung", "l’utilisation"],
  overview: ["the overview", "die Übersicht", "l’aperçu"],
  tunnel: ["the tunnel{of}", "den Tunnel{of}", "le tunnel{of}"],
  webhook: ["a Webhook{of}", "einen Webhook{of}", "un webhook{of}"],
} as const satisfies Readonly<Record<string, InThree>>

/** Objects in records without a name. */
const unnamed: { readonly [O in keyof typeof objects]?: InThree } = {
  app: ["an app", "eine App", "une application"],
  appAccess: ["the access of an app", "den Zugriff einer App", "l’accès d’une application"],
  atSite: [" at a site{of}", " bei einer Website{of}", " à un site{of}"],
  connector: ["a connected account{of}", "ein verbundenes Konto{of}", "un compte connecté{of}"],
  credentials: ["the first secrets{of}", "die ersten Zugangsdaten{of}", "les premiers secrets{of}"],
  directMessage: ["a direct message{of}", "eine Direktnachricht{of}", "un message privé{of}"],
  identity: ["an Identity", "eine Identität", "une identité"],
  identityToken: ["a token{of}", "ein Token{of}", "un jeton{of}"],
  key: ["a key{of}", "einen Schlüssel{of}", "une clé{of}"],
  post: ["a post{of}", "einen Beitrag{of}", "une publication{of}"],
  requestSignature: ["a signature{of}", "eine Signatur{of}", "une signature{of}"],
  setUp: ["the set-up{of}", "die Einrichtung{of}", "la création{of}"],
  siteSignIn: ["a sign-in at a site{of}", "eine Anmeldung bei einer Website{of}", "une connexion à un site{of}"],
}

type Phrase = readonly [keyof typeof verbs, keyof typeof objects]

/** Phrases by action, that is, by group and endpoint. */
export const phrases: Readonly<Record<string, Phrase>> = {
  "sign_in.requestMagicLink": ["request", "signInLink"],
  "sign_in.consumeMagicLink": ["signIn", "nothing"],
  "session.revoke": ["signOut", "nothing"],
  "session.revokeOne": ["end", "session"],
  "session.revokeAll": ["end", "sessions"],
  "account.acceptTerms": ["accept", "terms"],
  "account.update": ["change", "account"],
  "account.remove": ["delete", "account"],
  "audit.list": ["read", "audit"],
  "audit.read": ["read", "audit"],
  "audit.export": ["download", "audit"],
  "audit.bridge": ["close", "auditBefore"],
  "device_login.start": ["request", "device"],
  "device_login.poll": ["collect", "device"],
  "device_confirmation.approve": ["approve", "device"],
  "device_confirmation.deny": ["reject", "device"],
  "exports.create": ["request", "export"],
  "exports.archive": ["download", "export"],
  "api_keys.create": ["create", "key"],
  "api_keys.createForIdentity": ["create", "key"],
  "api_keys.rotate": ["rotate", "key"],
  "api_keys.revoke": ["revoke", "key"],
  "identities.create": ["create", "identity"],
  "identities.remove": ["delete", "identity"],
  "identities.retry": ["retry", "setUp"],
  "identities.secrets": ["read", "credentials"],
  "identities.acknowledge": ["dismiss", "credentials"],
  "identities.rotate": ["rotate", "credentials"],
  "cards.patch": ["change", "card"],
  "proof.createToken": ["request", "identityToken"],
  "proof.createSignature": ["request", "requestSignature"],
  "proof.verify": ["verify", "proof"],
  "proof.updateSettings": ["change", "audiences"],
  "agent_sign_ins.create": ["request", "siteSignIn"],
  "agent_sign_ins.approve": ["approve", "siteSignIn"],
  "agent_sign_ins.refuse": ["reject", "siteSignIn"],
  "agent_sign_ins.end": ["end", "siteSignIn"],
  "oauth.sign_in": ["signIn", "atSite"],
  "proof.registerKey": ["add", "signingKey"],
  "proof.removeKey": ["remove", "signingKey"],
  "proof.rotateKey": ["rotate", "signingKey"],
  "messages.patch": ["mark", "message"],
  "messages.remove": ["delete", "message"],
  "messages.patchMany": ["mark", "messages"],
  "messages.removeMany": ["delete", "messages"],
  "sending.send": ["send", "message"],
  "sending.draft": ["create", "draft"],
  "sending.replaceDraft": ["change", "draft"],
  "sending.removeDraft": ["delete", "draft"],
  "sending.sendDraft": ["send", "draft"],
  "sending.approve": ["approve", "message"],
  "sending.refuse": ["reject", "message"],
  "mail_settings.allow": ["add", "allowedRecipient"],
  "mail_settings.disallow": ["remove", "allowedRecipient"],
  "mail_settings.lift": ["lift", "block"],
  "mail_settings.setDisclosure": ["change", "aiDisclosure"],
  "mail_settings.resetDisclosure": ["reset", "aiDisclosure"],
  "mail_settings.switch": ["change", "mailSettings"],
  "org_mail.switch": ["pause", "allMail"],
  "webhooks.create": ["create", "webhook"],
  "webhooks.patch": ["change", "webhook"],
  "webhooks.remove": ["delete", "webhook"],
  "webhooks.test": ["test", "webhook"],
  "webhooks.rotate": ["rotate", "signingSecret"],
  "webhooks.recover": ["sendAgain", "deliveries"],
  "events.replay": ["sendAgain", "event"],
  "tunnels.patch": ["change", "tunnel"],
  "tunnel.link": ["connect", "tunnel"],
  "connectors.pauseAll": ["pause", "connectors"],
  "connectors.pause": ["pause", "connector"],
  "connectors.connect": ["connect", "connector"],
  "connectors.disconnect": ["disconnect", "connector"],
  "connectors.authorize": ["connect", "connector"],
  "connectors.callback": ["connect", "connector"],
  "connectors.post": ["publish", "post"],
  "connectors.dm": ["send", "directMessage"],
  "vault.value": ["read", "secret"],
  "vault.put": ["save", "secret"],
  "vault.remove": ["delete", "secret"],
  "vault.versions": ["read", "secretVersions"],
  "vault.restore": ["restore", "oldSecret"],
  "grants.update": ["change", "appAccess"],
  "grants.revoke": ["revoke", "appAccess"],
  "public.hit": ["save", "hit"],
  "public.contact": ["send", "contact"],
  "imap.login": ["signIn", "byImap"],
  "submission.login": ["signIn", "bySmtp"],
  "submission.send": ["send", "message"],
  "mcp.exchange": ["use", "mcp"],
  "oauth.consent": ["connect", "app"],
  "oauth.token": ["signIn", "nothing"],
  "oauth.refresh": ["renew", "ownAccess"],
  "oauth.revoke": ["revoke", "appAccess"],
}

/** Objects by group, for rejected reads, which have no separate phrase. */
export const groups: Readonly<Record<string, keyof typeof objects>> = {
  sign_in: "session",
  session: "session",
  account: "account",
  audit: "audit",
  device_login: "device",
  device_confirmation: "device",
  exports: "export",
  api_keys: "key",
  handles: "name",
  identities: "identity",
  cards: "card",
  proof: "signingKey",
  agent_sign_ins: "siteSignIn",
  profiles: "profile",
  messages: "message",
  threads: "thread",
  sending: "message",
  mail_settings: "mailSettings",
  org_mail: "allMail",
  events: "event",
  webhooks: "webhook",
  tunnels: "tunnel",
  connectors: "connector",
  vault: "secret",
  grants: "appAccess",
  limits: "limits",
  usage: "usage",
  overview: "overview",
  public: "profile",
}

const kinds: Readonly<Record<string, InThree>> = {
  session: ["The account holder", "Der Kontoinhaber", "Le titulaire du compte"],
  admin_key: ["An Admin Key", "Ein Admin Key", "Une clé Admin"],
  identity_key: ["An Identity Key", "Ein Identity Key", "Une clé d’identité"],
  grant: ["An app", "Eine App", "Une application"],
  imap_password: ["A mail program", "Ein E-Mail-Programm", "Un logiciel de messagerie"],
  service: ["The service", "Der Dienst", "Le service"],
  nobody: ["Somebody unknown", "Jemand Unbekanntes", "Une personne inconnue"],
}

/** Beginning and end of a sentence about an action that was not completed. */
const tries: Readonly<Record<string, InThree>> = {
  refused: ["{who} tried to {what}: refused", "{who} wollte {what}: verweigert", "{who} a voulu {what}\u00a0: refusé"],
  failed: ["{who} tried to {what}: failed", "{who} wollte {what}: fehlgeschlagen", "{who} a voulu {what}\u00a0: échec"],
}
const repeated: InThree = [" (repeated request)", " (wiederholte Anfrage)", " (requête répétée)"]
const ofHandle = (handle: string): InThree => [" of {i}", " von {i}", /^[aeiouyh]/i.test(handle) ? " d’{i}" : " de {i}"]

/**
 * Returns the sentence of a record. An unknown action, as a newer version may record it, is shown by its name. `mark`
 * sets values apart that users chose.
 */
export const auditSentence = (
  language: SentenceLanguage,
  { action, actor, identity, target, outcome, count }: DescribedRecord,
  mark: (value: string) => string = (value) => value,
): string => {
  const say = (texts: InThree) => inLanguage(language, texts)
  const named = said(actor.client) || said(actor.name)
  // The service itself has no kind of credential.
  const kind = action === "audit.bridge" ? "service" : actor.kind
  const who = named === "" ? say(kinds[kind] ?? kinds["nobody"]!) : mark(named)
  const group = groups[action.split(".")[0]!]
  const phrase: Phrase | undefined = Object.hasOwn(phrases, action)
    ? phrases[action]
    : group === undefined
      ? undefined
      : ["read", group]
  const times = count > 1 ? ` × ${count}` : ""
  if (phrase === undefined) return `${who}: ${action}${times}`
  const [does, what] = phrase
  const handle = said(identity)
  const name = said(target?.name)
  // The target is the Identity itself, so its name is not repeated.
  const isIdentity = target?.type === "identity"
  const n = name === "" || (name === handle && !isIdentity) ? "" : ` ${mark(quoted(language, name))}`
  const i = handle === "" || handle === named || isIdentity ? "" : fill(say(ofHandle(handle)), { i: mark(handle) })
  const o = fill(say((n === "" ? unnamed[what] : undefined) ?? objects[what]), { n, of: i })
  const template = tries[outcome]
  const sentence =
    template === undefined
      ? `${who} ${fill(say(verbs[does].done), { o })}`
      : fill(say(template), { who, what: fill(say(verbs[does].tried), { o }) })
  return `${sentence.replace(/\s+$/, "")}${outcome === "repeated" ? say(repeated) : ""}${times}`
}
