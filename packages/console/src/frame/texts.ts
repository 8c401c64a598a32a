import { texts } from "../texts/Texts.ts"

export const say = texts({
  images: ["Show images", "Bilder anzeigen", "Afficher les images"],
  images_why: [
    "Images from elsewhere are not loaded: they tell the sender that, when and where you read this.",
    "Bilder von anderswo werden nicht geladen: sie verraten dem Absender, dass, wann und wo du das liest.",
    "Les images distantes ne sont pas chargées : elles diraient à l’expéditeur que vous lisez, quand et où.",
  ],
  frame: ["The message as HTML", "Die Nachricht als HTML", "Le message en HTML"],
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
