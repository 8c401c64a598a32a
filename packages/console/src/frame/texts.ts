import { texts } from "../texts/Texts.ts"

export const say = texts({
  ready: ["ready", "bereit", "prête"],
  provisioning: ["being set up", "wird eingerichtet", "en création"],
  failed: ["failed", "fehlgeschlagen", "en échec"],
  deleting: ["being deleted", "wird gelöscht", "en suppression"],
  connected: ["connected", "verbunden", "connecté"],
  disconnected: ["not connected", "nicht verbunden", "non connecté"],
  tabs: ["Parts of {handle}", "Teile von {handle}", "Parties de {handle}"],
  overview: ["Overview", "Überblick", "Aperçu"],
  mail: ["Mail", "Mail", "Courrier"],
  webhooks: ["Webhooks", "Webhooks", "Webhooks"],
  tunnel: ["Tunnel", "Tunnel", "Tunnel"],
  connectors: ["Connectors", "Konnektoren", "Connecteurs"],
  profile: ["Profile", "Profil", "Profil"],
  manage: ["Settings", "Einstellungen", "Réglages"],
  gone: ["There is no such Identity", "Diese Identität gibt es nicht", "Cette identité n’existe pas"],
  gone_why: [
    "It was deleted, or the address is mistyped.",
    "Sie wurde gelöscht, oder die Adresse ist vertippt.",
    "Elle a été supprimée, ou l’adresse est erronée.",
  ],
  to_list: ["To the Identities", "Zu den Identitäten", "Vers les identités"],
})
