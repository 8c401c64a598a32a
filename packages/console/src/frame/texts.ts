import { texts } from "../texts/Texts.ts"

export const say = texts({
  images: ["Show images", "Bilder anzeigen", "Afficher les images"],
  images_why: [
    "Remote images are blocked: loading them tells the sender that you read this message. Your IP address and browser stay hidden.",
    "Externe Bilder sind blockiert: Beim Laden erfährt der Absender, dass du die Nachricht liest. Deine IP-Adresse und dein Browser bleiben verborgen.",
    "Les images distantes sont bloquées : leur chargement indique à l’expéditeur que vous lisez ce message. Votre adresse IP et votre navigateur restent masqués.",
  ],
  frame: ["HTML message", "HTML-Nachricht", "Message HTML"],
  ready: ["Ready", "Bereit", "Prête"],
  provisioning: ["Setting up", "Wird eingerichtet", "En création"],
  failed: ["Failed", "Fehlgeschlagen", "En échec"],
  deleting: ["Deleting", "Wird gelöscht", "En suppression"],
  connected: ["Connected", "Verbunden", "Connecté"],
  disconnected: ["Not connected", "Nicht verbunden", "Non connecté"],
  tabs: ["Sections of {handle}", "Bereiche von {handle}", "Sections de {handle}"],
  overview: ["Overview", "Überblick", "Aperçu"],
  mail: ["Mail", "E-Mail", "E-mail"],
  webhooks: ["Webhooks", "Webhooks", "Webhooks"],
  tunnel: ["Tunnel", "Tunnel", "Tunnel"],
  connectors: ["Connectors", "Konnektoren", "Connecteurs"],
  profile: ["Profile", "Profil", "Profil"],
  proof: ["Proof", "Nachweise", "Preuves"],
  manage: ["Settings", "Einstellungen", "Paramètres"],
  gone: ["Identity not found", "Identität nicht gefunden", "Identité introuvable"],
  gone_why: [
    "It was deleted, or the address contains a typo.",
    "Sie wurde gelöscht, oder die Adresse enthält einen Tippfehler.",
    "Elle a été supprimée, ou l’adresse contient une erreur.",
  ],
  to_list: ["View all Identities", "Alle Identitäten anzeigen", "Afficher toutes les identités"],
})
