/** The consent page in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"
import type { Action, Capability } from "@svc/domain/account/Scope"

export interface ConsentWords {
  readonly title: (name: string) => string
  /** Behind the host, in large letters before it. */
  readonly site: string
  readonly program: (port: string) => string
  readonly app: (scheme: string) => string
  readonly calls: (name: string) => string
  readonly unchecked: string
  readonly described: (host: string) => string
  readonly foreign: (host: string, receiver: string) => string
  readonly account: string
  readonly notYou: string
  readonly before: string
  readonly agents: string
  readonly only: (handle: string) => string
  readonly these: string
  readonly whole: string
  readonly noAgents: string
  readonly rights: string
  readonly read: string
  readonly act: string
  readonly choose: string
  readonly vault: string
  readonly asks: string
  readonly until: string
  readonly days: (days: number) => string
  readonly ends: string
  readonly allow: string
  readonly deny: string
  readonly sent: string
  readonly pick: string
  readonly full: string
  readonly going: string
  readonly onward: string
  readonly gone: string
  readonly again: string
  readonly unknown: string
  readonly unknownWhy: string
  readonly signedIn: string
  readonly backToApp: string
  readonly busy: string
  readonly capabilities: { readonly [C in Capability]: string }
  readonly actions: { readonly [A in Action]: string }
}

const en: ConsentWords = {
  title: (name) => `Connect ${name} to your agents?`,
  site: "will receive the access.",
  program: (port) =>
    `A program on this computer will receive the access (port ${port}). Continue only if you have just started it yourself.`,
  app: (scheme) => `An app that opens ${scheme} links will receive the access.`,
  calls: (name) => `It calls itself “${name}”.`,
  unchecked: "We do not check names.",
  described: (host) => `Described by ${host}.`,
  foreign: (host, receiver) =>
    `${host} describes this app, but ${receiver} receives the access. They are not the same site.`,
  account: "Account:",
  notYou: "not you?",
  before: "You connected it before. What you choose now replaces that:",
  agents: "Which agents?",
  only: (handle) => `Act as @${handle} only`,
  these: "These:",
  whole: "Whole account, future agents too",
  noAgents: "There is no agent yet. Make one in the console first, or allow the whole account.",
  rights: "What may it do?",
  read: "Read only",
  act: "Read and act: send mail, change cards and webhooks",
  choose: "Choose:",
  vault: "Also read Vault values (whoever controls the app can then read every password in it)",
  asks: "It asks for:",
  until: "Until",
  days: (days) => (days === 365 ? "1 year" : `${days} days`),
  ends: "You can end it at any time under Keys; it stops within a second.",
  allow: "Allow",
  deny: "Deny",
  sent: "Did someone send you this link? Then choose Deny.",
  pick: "Choose at least one agent and one right.",
  full: "There are 50 connected apps already. End one under Keys, then try again.",
  going: "Going back to the app",
  onward: "Continue",
  gone: "This request does not work any more",
  again: "It was decided already, or it is older than 15 minutes. Start again in your app.",
  unknown: "This app cannot be connected",
  unknownWhy: "The link names an app or a return address that we do not know. Nothing was sent anywhere.",
  signedIn: "You are signed in",
  backToApp: "Go back to your app and connect it there. This browser is not the one that asked for the link.",
  busy: "Not just now. Try again in a moment.",
  capabilities: {
    identity: "Agents",
    mail: "Mail",
    card: "Cards",
    tunnel: "Tunnels",
    webhook: "Webhooks",
    event: "Events",
    vault: "Vault",
    connector: "Social accounts",
    account: "Account",
  },
  actions: { read: "read", write: "change", send: "send", admin: "administer", secret: "values" },
}

const de: ConsentWords = {
  title: (name) => `${name} mit Ihren Agenten verbinden?`,
  site: "wird den Zugang erhalten.",
  program: (port) =>
    `Ein Programm auf diesem Computer wird den Zugang erhalten (Port ${port}). Fahren Sie nur fort, wenn Sie es gerade selbst gestartet haben.`,
  app: (scheme) => `Eine App, die ${scheme}-Links öffnet, wird den Zugang erhalten.`,
  calls: (name) => `Sie nennt sich „${name}“.`,
  unchecked: "Namen prüfen wir nicht.",
  described: (host) => `Beschrieben von ${host}.`,
  foreign: (host, receiver) =>
    `${host} beschreibt diese App, aber ${receiver} erhält den Zugang. Das ist nicht dieselbe Website.`,
  account: "Konto:",
  notYou: "nicht Sie?",
  before: "Sie haben sie schon einmal verbunden. Was Sie jetzt wählen, ersetzt das:",
  agents: "Welche Agenten?",
  only: (handle) => `Nur als @${handle} handeln`,
  these: "Diese:",
  whole: "Das ganze Konto, auch künftige Agenten",
  noAgents: "Es gibt noch keinen Agenten. Legen Sie zuerst in der Konsole einen an, oder erlauben Sie das ganze Konto.",
  rights: "Was darf sie?",
  read: "Nur lesen",
  act: "Lesen und handeln: Mail senden, Karten und Webhooks ändern",
  choose: "Auswählen:",
  vault: "Auch Werte im Tresor lesen (wer die App kontrolliert, kann dann jedes Passwort darin lesen)",
  asks: "Sie bittet um:",
  until: "Bis",
  days: (days) => (days === 365 ? "1 Jahr" : `${days} Tage`),
  ends: "Sie können das jederzeit unter Schlüssel beenden; es endet innerhalb einer Sekunde.",
  allow: "Erlauben",
  deny: "Ablehnen",
  sent: "Hat Ihnen jemand diesen Link geschickt? Dann lehnen Sie ab.",
  pick: "Wählen Sie mindestens einen Agenten und ein Recht.",
  full: "Es sind schon 50 Apps verbunden. Beenden Sie eine unter Schlüssel und versuchen Sie es noch einmal.",
  going: "Zurück zur App",
  onward: "Weiter",
  gone: "Diese Anfrage gilt nicht mehr",
  again: "Sie wurde schon entschieden oder ist älter als 15 Minuten. Beginnen Sie in Ihrer App noch einmal.",
  unknown: "Diese App lässt sich nicht verbinden",
  unknownWhy: "Der Link nennt eine App oder eine Rückadresse, die wir nicht kennen. Es wurde nichts gesendet.",
  signedIn: "Sie sind angemeldet",
  backToApp:
    "Gehen Sie zurück zu Ihrer App und verbinden Sie sie dort. Dieser Browser ist nicht der, der den Link angefordert hat.",
  busy: "Gerade nicht. Versuchen Sie es gleich noch einmal.",
  capabilities: {
    identity: "Agenten",
    mail: "Mail",
    card: "Karten",
    tunnel: "Tunnel",
    webhook: "Webhooks",
    event: "Ereignisse",
    vault: "Tresor",
    connector: "Soziale Konten",
    account: "Konto",
  },
  actions: { read: "lesen", write: "ändern", send: "senden", admin: "verwalten", secret: "Werte" },
}

const fr: ConsentWords = {
  title: (name) => `Connecter ${name} à vos agents ?`,
  site: "recevra l’accès.",
  program: (port) =>
    `Un programme de cet ordinateur recevra l’accès (port ${port}). Ne continuez que si vous venez de le lancer vous-même.`,
  app: (scheme) => `Une application qui ouvre les liens ${scheme} recevra l’accès.`,
  calls: (name) => `Elle se nomme « ${name} ».`,
  unchecked: "Nous ne vérifions pas les noms.",
  described: (host) => `Décrite par ${host}.`,
  foreign: (host, receiver) =>
    `${host} décrit cette application, mais ${receiver} reçoit l’accès. Ce n’est pas le même site.`,
  account: "Compte :",
  notYou: "pas vous ?",
  before: "Vous l’avez déjà connectée. Ce que vous choisissez maintenant remplace ceci :",
  agents: "Quels agents ?",
  only: (handle) => `Agir comme @${handle} seulement`,
  these: "Ceux-ci :",
  whole: "Tout le compte, agents futurs compris",
  noAgents: "Il n’y a pas encore d’agent. Créez-en un dans la console, ou autorisez tout le compte.",
  rights: "Que peut-elle faire ?",
  read: "Lire seulement",
  act: "Lire et agir : envoyer du courrier, modifier cartes et webhooks",
  choose: "Choisir :",
  vault: "Lire aussi les valeurs du coffre (qui contrôle l’application peut alors y lire chaque mot de passe)",
  asks: "Elle demande :",
  until: "Jusqu’à",
  days: (days) => (days === 365 ? "1 an" : `${days} jours`),
  ends: "Vous pouvez y mettre fin à tout moment sous Clés ; elle s’arrête en une seconde.",
  allow: "Autoriser",
  deny: "Refuser",
  sent: "Quelqu’un vous a envoyé ce lien ? Alors refusez.",
  pick: "Choisissez au moins un agent et un droit.",
  full: "Il y a déjà 50 applications connectées. Mettez fin à l’une d’elles sous Clés, puis réessayez.",
  going: "Retour à l’application",
  onward: "Continuer",
  gone: "Cette demande n’est plus valable",
  again: "Elle a déjà été tranchée, ou elle a plus de 15 minutes. Recommencez dans votre application.",
  unknown: "Cette application ne peut pas être connectée",
  unknownWhy: "Le lien nomme une application ou une adresse de retour inconnue. Rien n’a été envoyé.",
  signedIn: "Vous êtes connecté",
  backToApp:
    "Retournez à votre application et connectez-la là-bas. Ce navigateur n’est pas celui qui a demandé le lien.",
  busy: "Pas maintenant. Réessayez dans un instant.",
  capabilities: {
    identity: "Agents",
    mail: "Courrier",
    card: "Cartes",
    tunnel: "Tunnels",
    webhook: "Webhooks",
    event: "Événements",
    vault: "Coffre",
    connector: "Comptes sociaux",
    account: "Compte",
  },
  actions: { read: "lire", write: "modifier", send: "envoyer", admin: "administrer", secret: "valeurs" },
}

export const words: { readonly [L in Language]: ConsentWords } = { en, de, fr }
