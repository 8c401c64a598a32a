import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Overview", "Übersicht", "Accueil"],
  well: ["All agents are well", "Allen Agenten geht es gut", "Tous les agents vont bien"],
  attention: [
    { one: "{count} thing needs you", other: "{count} things need you" },
    { one: "{count} Sache braucht dich", other: "{count} Sachen brauchen dich" },
    { one: "{count} point vous attend", many: "{count} points vous attendent", other: "{count} points vous attendent" },
  ],
  needs: ["Needs you", "Braucht dich", "À voir"],
  saga_failed: [
    "{handle} could not be set up: {step}",
    "{handle} konnte nicht eingerichtet werden: {step}",
    "{handle} n’a pas pu être créée : {step}",
  ],
  webhook_failed: [
    "A Webhook of {handle} was given up on: {why}",
    "Ein Webhook von {handle} wurde aufgegeben: {why}",
    "Un webhook de {handle} a été abandonné : {why}",
  ],
  approval_wanted: [
    "{handle} asks whether to send “{subject}”",
    "{handle} fragt, ob „{subject}“ hinausgehen soll",
    "{handle} demande s’il faut envoyer « {subject} »",
  ],
  limit_near: [
    "Four fifths of {limit} are used",
    "Vier Fünftel von {limit} sind verbraucht",
    "Quatre cinquièmes de {limit} sont utilisés",
  ],
  blocked: [
    "Tunnels serve nothing until the day ends (UTC): their transfer is used up",
    "Tunnel liefern bis Tagesende (UTC) nichts: ihr Transfer ist aufgebraucht",
    "Les tunnels ne servent plus rien jusqu’à la fin du jour (UTC) : transfert épuisé",
  ],
  look: ["Look", "Ansehen", "Voir"],
  agents: ["Identities", "Identitäten", "Identités"],
  all: ["All", "Alle", "Toutes"],
  new: ["Create Identity", "Identität anlegen", "Créer une identité"],
  recent: ["Latest Events", "Neueste Ereignisse", "Derniers événements"],
  first_title: ["Name your agent", "Gib deinem Agenten einen Namen", "Nommez votre agent"],
  first_lead: [
    "A few seconds later it has a mailbox, a public address, a profile, a vault and a key. The name is taken for ever.",
    "Wenige Sekunden später hat er Postfach, öffentliche Adresse, Profil, Tresor und Schlüssel. Der Name gilt für immer.",
    "Quelques secondes plus tard il a une boîte, une adresse publique, un profil, un coffre et une clé. Le nom est définitif.",
  ],
  last_mail: ["Last mail", "Letzte Mail", "Dernier message"],
  no_mail: ["none yet", "noch keine", "aucun"],
  name: ["Name", "Name", "Nom"],
  status: ["Status", "Zustand", "État"],
  tunnel: ["Tunnel", "Tunnel", "Tunnel"],
})
