import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Home", "Übersicht", "Accueil"],
  well: ["All agents healthy", "Alle Agenten laufen einwandfrei", "Tous les agents fonctionnent normalement"],
  attention: [
    { one: "{count} item needs your attention", other: "{count} items need your attention" },
    { one: "{count} offener Punkt", other: "{count} offene Punkte" },
    {
      one: "{count} point à traiter",
      many: "{count} points à traiter",
      other: "{count} points à traiter",
    },
  ],
  needs: ["Needs attention", "Zu erledigen", "À traiter"],
  saga_failed: [
    "Setup of {handle} failed at this step: {step}",
    "Die Einrichtung von {handle} ist bei diesem Schritt fehlgeschlagen: {step}",
    "La création de {handle} a échoué à cette étape : {step}",
  ],
  webhook_failed: [
    "All recent deliveries to a Webhook of {handle} failed: {why}",
    "Die letzten Zustellungen an einen Webhook von {handle} sind alle fehlgeschlagen: {why}",
    "Toutes les livraisons récentes à un webhook de {handle} ont échoué : {why}",
  ],
  approval_wanted: [
    "{handle} requests approval to send “{subject}”",
    "{handle} bittet um Freigabe von „{subject}“",
    "{handle} demande votre accord pour envoyer « {subject} »",
  ],
  sign_in_wanted: [
    "{handle} requests approval to sign in at {site}",
    "{handle} bittet um Freigabe der Anmeldung bei {site}",
    "{handle} demande votre accord pour se connecter à {site}",
  ],
  limit_near: [
    "80% or more of a limit is used: {limit}",
    "Ein Limit ist zu mindestens 80 % ausgeschöpft: {limit}",
    "Une limite est atteinte à 80 % ou plus : {limit}",
  ],
  limit_near_of: [
    "80% or more of a limit of {handle} is used: {limit}",
    "Ein Limit von {handle} ist zu mindestens 80 % ausgeschöpft: {limit}",
    "Une limite de {handle} est atteinte à 80 % ou plus : {limit}",
  ],
  key_expires: [
    "The key “{name}” expires soon",
    "Der Schlüssel „{name}“ läuft bald ab",
    "La clé « {name} » expire bientôt",
  ],
  today: ["Today (UTC)", "Heute (UTC)", "Aujourd’hui (UTC)"],
  received: ["Messages received", "Empfangene Nachrichten", "Messages reçus"],
  sent: ["Messages sent", "Gesendete Nachrichten", "Messages envoyés"],
  deliveries: ["Webhook deliveries", "Webhook-Zustellungen", "Livraisons de webhooks"],
  requests: ["Tunnel requests", "Tunnel-Anfragen", "Requêtes du tunnel"],
  calls: ["API calls", "API-Aufrufe", "Appels d’API"],
  failed: [
    { one: "{count} failed", other: "{count} failed" },
    { one: "{count} fehlgeschlagen", other: "{count} fehlgeschlagen" },
    { one: "{count} échec", many: "{count} échecs", other: "{count} échecs" },
  ],
  rejected: [
    { one: "{count} rejected", other: "{count} rejected" },
    { one: "{count} abgelehnt", other: "{count} abgelehnt" },
    { one: "{count} refusé", many: "{count} refusés", other: "{count} refusés" },
  ],
  activity: ["Activity, 14 days", "Aktivität, 14 Tage", "Activité, 14 jours"],
  agents: ["Identities", "Identitäten", "Identités"],
  all: ["View all", "Alle anzeigen", "Tout afficher"],
  new: ["Create Identity", "Identität anlegen", "Créer une identité"],
  recent: ["Recent Events", "Neueste Ereignisse", "Événements récents"],
  first_title: ["Name your agent", "Gib deinem Agenten einen Namen", "Nommez votre agent"],
  first_lead: [
    "Within seconds it has a mailbox, a public address, a profile, a vault and a key. You cannot change the name later.",
    "In wenigen Sekunden hat er ein Postfach, eine öffentliche Adresse, ein Profil, einen Tresor und einen Schlüssel. Den Namen kannst du später nicht ändern.",
    "En quelques secondes, il a une boîte mail, une adresse publique, un profil, un coffre et une clé. Le nom ne pourra pas être modifié.",
  ],
  last_mail: ["Latest message", "Neueste Nachricht", "Dernier message"],
  no_mail: ["None yet", "Noch keine", "Aucun"],
  name: ["Name", "Name", "Nom"],
  status: ["Status", "Status", "État"],
  tunnel: ["Tunnel", "Tunnel", "Tunnel"],
})
