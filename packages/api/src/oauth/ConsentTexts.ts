/** The texts of the consent page, on which an account holder allows or denies an app. */
import type { Language } from "@svc/domain/account/Account"
import type { Action, Capability } from "@svc/domain/account/Scope"
import { texts } from "../Texts.ts"

export const words = texts({
  title: [
    (name: string) => `Connect ${name} to your agents?`,
    (name: string) => `${name} mit deinen Agenten verbinden?`,
    (name: string) => `Connecter ${name} à vos agents ?`,
  ],
  /** The page for people who open the request of a site at which an agent signs in. */
  agent: {
    title: ["An agent signs in here", "Hier meldet sich ein Agent an", "Un agent se connecte ici"],
    text: [
      "This site asks an agent to sign in. You do not need to enter anything: let the agent run this command, and open the address that it prints.",
      "Diese Website bittet einen Agenten, sich anzumelden. Du musst nichts eingeben: Lass den Agenten diesen Befehl ausführen und die ausgegebene Adresse öffnen.",
      "Ce site demande à un agent de se connecter. Vous n’avez rien à saisir : laissez l’agent exécuter cette commande et ouvrir l’adresse affichée.",
    ],
    otherwise: [
      "Over MCP, the tool is `svc_sign_in_create`. The API is `POST /api/identities/{handle}/sign-ins`.",
      "Über MCP heißt das Werkzeug `svc_sign_in_create`. In der API ist es `POST /api/identities/{handle}/sign-ins`.",
      "Par MCP, l’outil est `svc_sign_in_create`. Dans l’API, c’est `POST /api/identities/{handle}/sign-ins`.",
    ],
  },
  /** Follows the host of the redirect address, which is set in large letters. */
  site: ["will receive access.", "erhält den Zugriff.", "recevra l’accès."],
  program: [
    (port: string) =>
      `A program on this computer will receive access (port ${port}). Continue only if you have just started it yourself.`,
    (port: string) =>
      `Ein Programm auf diesem Computer erhält den Zugriff (Port ${port}). Fahre nur fort, wenn du es gerade selbst gestartet hast.`,
    (port: string) =>
      `Un programme de cet ordinateur recevra l’accès (port ${port}). Ne continuez que si vous venez de le lancer vous-même.`,
  ],
  app: [
    (scheme: string) => `An app that opens ${scheme} links will receive access.`,
    (scheme: string) => `Eine App, die ${scheme}-Links öffnet, erhält den Zugriff.`,
    (scheme: string) => `Une application qui ouvre les liens ${scheme} recevra l’accès.`,
  ],
  calls: [
    (name: string) => `The app calls itself “${name}”.`,
    (name: string) => `Die App nennt sich „${name}“.`,
    (name: string) => `L’application se nomme « ${name} ».`,
  ],
  unchecked: ["This name has not been verified.", "Dieser Name wurde nicht überprüft.", "Ce nom n’a pas été vérifié."],
  described: [
    (host: string) => `Described by ${host}.`,
    (host: string) => `Beschrieben von ${host}.`,
    (host: string) => `Décrite par ${host}.`,
  ],
  foreign: [
    (host: string, receiver: string) =>
      `${host} describes this app, but ${receiver} receives access. These are different sites.`,
    (host: string, receiver: string) =>
      `${host} beschreibt diese App, aber ${receiver} erhält den Zugriff. Das sind verschiedene Websites.`,
    (host: string, receiver: string) =>
      `${host} décrit cette application, mais ${receiver} reçoit l’accès. Ce sont deux sites différents.`,
  ],
  account: ["Account:", "Konto:", "Compte :"],
  notYou: ["not you?", "nicht du?", "pas vous ?"],
  before: [
    "You have already connected this app. Your new choice replaces the current access:",
    "Du hast diese App bereits verbunden. Deine neue Auswahl ersetzt den bisherigen Zugriff:",
    "Vous avez déjà connecté cette application. Votre nouveau choix remplace l’accès actuel :",
  ],
  agents: ["Which agents?", "Welche Agenten?", "Quels agents ?"],
  only: [
    (handle: string) => `Act as @${handle} only`,
    (handle: string) => `Nur als @${handle} handeln`,
    (handle: string) => `Agir comme @${handle} seulement`,
  ],
  these: ["Selected agents:", "Ausgewählte Agenten:", "Agents choisis :"],
  whole: [
    "Whole account, including future agents",
    "Ganzes Konto, auch künftige Agenten",
    "Tout le compte, agents futurs compris",
  ],
  noAgents: [
    "This account has no agent yet. Create one in the console first, or allow the whole account.",
    "In diesem Konto gibt es noch keinen Agenten. Lege zuerst in der Konsole einen an oder erlaube das ganze Konto.",
    "Ce compte n’a pas encore d’agent. Créez-en un dans la console, ou autorisez tout le compte.",
  ],
  rights: ["What may the app do?", "Was darf die App?", "Que peut faire l’application ?"],
  read: ["Read only", "Nur lesen", "Lecture seule"],
  act: [
    "Read and act: send mail, change cards and webhooks",
    "Lesen und handeln: E-Mails senden, Karten und Webhooks ändern",
    "Lire et agir : envoyer des e-mails, modifier les cartes et les webhooks",
  ],
  choose: ["Custom:", "Benutzerdefiniert:", "Personnalisé :"],
  vault: [
    "Also read Vault values (anyone who controls the app can then read every password in the Vault)",
    "Auch Werte im Tresor lesen (wer die App kontrolliert, kann dann jedes Passwort im Tresor lesen)",
    "Lire aussi les valeurs du coffre (quiconque contrôle l’application peut alors lire tous les mots de passe du coffre)",
  ],
  asks: ["The app requests:", "Die App fordert an:", "L’application demande :"],
  until: ["Expires after", "Läuft ab nach", "Expire après"],
  days: [
    (days: number) => (days === 365 ? "1 year" : `${days} days`),
    (days: number) => (days === 365 ? "1 Jahr" : `${days} Tagen`),
    (days: number) => (days === 365 ? "1 an" : `${days} jours`),
  ],
  ends: [
    "You can revoke access at any time under Keys. It ends within a second.",
    "Du kannst den Zugriff jederzeit unter „Schlüssel“ widerrufen. Er endet innerhalb einer Sekunde.",
    "Vous pouvez révoquer l’accès à tout moment sous « Clés ». Il prend fin en moins d’une seconde.",
  ],
  allow: ["Allow", "Erlauben", "Autoriser"],
  deny: ["Deny", "Ablehnen", "Refuser"],
  sent: [
    "If someone sent you this link, choose Deny.",
    "Wenn dir jemand diesen Link geschickt hat, lehne ab.",
    "Si quelqu’un vous a envoyé ce lien, refusez.",
  ],
  pick: [
    "Select at least one agent and one permission.",
    "Wähle mindestens einen Agenten und eine Berechtigung.",
    "Choisissez au moins un agent et une autorisation.",
  ],
  full: [
    "This account already has 50 connected apps. Revoke one under Keys, then try again.",
    "Mit diesem Konto sind bereits 50 Apps verbunden. Widerrufe eine unter „Schlüssel“ und versuche es noch einmal.",
    "Ce compte a déjà 50 applications connectées. Révoquez-en une sous « Clés », puis réessayez.",
  ],
  going: ["Returning to the app", "Zurück zur App", "Retour à l’application"],
  onward: ["Continue", "Weiter", "Continuer"],
  gone: ["This request is no longer valid", "Diese Anfrage ist nicht mehr gültig", "Cette demande n’est plus valable"],
  again: [
    "It has already been answered, or it is older than 15 minutes. Start again in your app.",
    "Sie wurde bereits beantwortet oder ist älter als 15 Minuten. Beginne in deiner App von vorn.",
    "Elle a déjà reçu une réponse, ou elle date de plus de 15 minutes. Recommencez dans votre application.",
  ],
  unknown: [
    "This app cannot be connected",
    "Diese App kann nicht verbunden werden",
    "Cette application ne peut pas être connectée",
  ],
  unknownWhy: [
    "The link contains an unknown app or an unregistered redirect address. Nothing was sent to the app.",
    "Der Link enthält eine unbekannte App oder eine nicht registrierte Weiterleitungsadresse. An die App wurde nichts gesendet.",
    "Le lien contient une application inconnue ou une adresse de redirection non enregistrée. Rien n’a été envoyé à l’application.",
  ],
  busy: [
    "Temporarily unavailable. Try again in a moment.",
    "Vorübergehend nicht verfügbar. Versuche es gleich noch einmal.",
    "Temporairement indisponible. Réessayez dans un instant.",
  ],
  reload: [
    "Nothing was sent to the app. Reload this page. If that does not help, start again in your app.",
    "An die App wurde nichts gesendet. Lade diese Seite neu. Wenn das nicht hilft, beginne in deiner App von vorn.",
    "Rien n’a été envoyé à l’application. Rechargez cette page. Si cela ne suffit pas, recommencez dans votre application.",
  ],
  capabilities: {
    identity: ["Agents", "Agenten", "Agents"],
    mail: ["Mail", "E-Mail", "E-mail"],
    card: ["Cards", "Karten", "Cartes"],
    tunnel: ["Tunnels", "Tunnel", "Tunnels"],
    webhook: ["Webhooks", "Webhooks", "Webhooks"],
    event: ["Events", "Ereignisse", "Événements"],
    vault: ["Vault", "Tresor", "Coffre"],
    connector: ["Social accounts", "Soziale Konten", "Comptes sociaux"],
    proof: ["Proof of identity", "Identitätsnachweis", "Preuve d’identité"],
    account: ["Account", "Konto", "Compte"],
  } satisfies { readonly [C in Capability]: readonly [string, string, string] },
  actions: {
    read: ["read", "lesen", "lire"],
    write: ["change", "ändern", "modifier"],
    send: ["send", "senden", "envoyer"],
    admin: ["administer", "verwalten", "administrer"],
    token: ["sign in elsewhere", "anderswo anmelden", "se connecter ailleurs"],
    secret: ["values", "Werte", "valeurs"],
  } satisfies { readonly [A in Action]: readonly [string, string, string] },
})

export type ConsentTexts = (typeof words)[Language]
