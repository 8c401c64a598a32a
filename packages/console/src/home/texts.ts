import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Home", "Übersicht", "Accueil"],
  well: ["All agents healthy", "Alle Agenten laufen einwandfrei", "Tous les agents fonctionnent"],
  attention: [
    { one: "{count} item needs your attention", other: "{count} items need your attention" },
    { one: "{count} Punkt erfordert deine Aufmerksamkeit", other: "{count} Punkte erfordern deine Aufmerksamkeit" },
    {
      one: "{count} point requiert votre attention",
      many: "{count} points requièrent votre attention",
      other: "{count} points requièrent votre attention",
    },
  ],
  needs: ["Needs attention", "Zu erledigen", "À traiter"],
  saga_failed: [
    "Setup of {handle} failed at this step: {step}",
    "Die Einrichtung von {handle} ist an diesem Schritt gescheitert: {step}",
    "La création de {handle} a échoué à cette étape : {step}",
  ],
  webhook_failed: [
    "Delivery to a Webhook of {handle} failed: {why}",
    "Zustellung an einen Webhook von {handle} fehlgeschlagen: {why}",
    "Échec de livraison à un webhook de {handle} : {why}",
  ],
  approval_wanted: [
    "{handle} requests approval to send “{subject}”",
    "{handle} bittet um Freigabe von „{subject}“",
    "{handle} demande votre accord pour envoyer « {subject} »",
  ],
  limit_near: [
    "80% of a limit is used: {limit}",
    "80 % eines Limits sind verbraucht: {limit}",
    "80 % d’une limite sont utilisés : {limit}",
  ],
  blocked: [
    "Tunnels are suspended until midnight UTC: today’s data transfer is used up",
    "Tunnel sind bis Mitternacht (UTC) gesperrt: Das heutige Datenvolumen ist aufgebraucht",
    "Tunnels suspendus jusqu’à minuit (UTC) : le volume de données du jour est épuisé",
  ],
  agents: ["Identities", "Identitäten", "Identités"],
  all: ["View all", "Alle anzeigen", "Tout afficher"],
  new: ["Create Identity", "Identität anlegen", "Créer une identité"],
  recent: ["Recent Events", "Neueste Ereignisse", "Événements récents"],
  first_title: ["Name your agent", "Gib deinem Agenten einen Namen", "Nommez votre agent"],
  first_lead: [
    "Within seconds it has a mailbox, a public address, a profile, a vault and a key. You cannot change the name later.",
    "In wenigen Sekunden hat er Postfach, öffentliche Adresse, Profil, Tresor und Schlüssel. Den Namen kannst du später nicht ändern.",
    "En quelques secondes, il a une boîte mail, une adresse publique, un profil, un coffre et une clé. Le nom ne pourra pas être modifié.",
  ],
  last_mail: ["Latest message", "Neueste Nachricht", "Dernier message"],
  no_mail: ["None yet", "Noch keine", "Aucun"],
  name: ["Name", "Name", "Nom"],
  status: ["Status", "Status", "État"],
  tunnel: ["Tunnel", "Tunnel", "Tunnel"],
})
