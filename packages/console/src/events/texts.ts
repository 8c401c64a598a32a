import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Activity", "Aktivität", "Activité"],
  lead: [
    "Events of all your agents, in real time.",
    "Ereignisse aller deiner Agenten in Echtzeit.",
    "Événements de tous vos agents, en temps réel.",
  ],
  audit: ["Audit log", "Audit-Protokoll", "Journal d’audit"],
  none: ["No Events yet", "Noch keine Ereignisse", "Aucun événement"],
  none_why: [
    "Events appear here as soon as they occur.",
    "Ereignisse erscheinen hier, sobald sie eintreten.",
    "Les événements apparaissent ici dès qu’ils se produisent.",
  ],
  none_match: ["No results", "Keine Ergebnisse", "Aucun résultat"],
  type: ["Type", "Typ", "Type"],
  any_type: ["All types", "Alle Typen", "Tous les types"],
  identity: ["Identity", "Identität", "Identité"],
  any_identity: ["All Identities", "Alle Identitäten", "Toutes les identités"],
  event: ["Event", "Ereignis", "Événement"],
  open_message: ["Open message", "Nachricht öffnen", "Ouvrir le message"],
  when: ["Time", "Zeitpunkt", "Date"],
  id: ["ID", "ID", "ID"],
  data: ["Data", "Daten", "Données"],
  deliveries: ["Webhook deliveries", "Webhook-Zustellungen", "Livraisons aux webhooks"],
  deliveries_why: [
    "Every delivery of this Event, with its attempts and responses.",
    "Alle Zustellungen dieses Ereignisses, mit Versuchen und Antworten.",
    "Toutes les livraisons de cet événement, avec leurs essais et réponses.",
  ],
  org_level: [
    "Account Events are not sent to Webhooks",
    "Kontoereignisse werden nicht an Webhooks gesendet",
    "Les événements du compte ne sont pas envoyés aux webhooks",
  ],
  back: ["All activity", "Alle Aktivität", "Toute l’activité"],
})
