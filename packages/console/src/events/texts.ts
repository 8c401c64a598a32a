import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Activity", "Aktivität", "Activité"],
  lead: [
    "Everything noteworthy that happened, as it happens.",
    "Alles Nennenswerte, im Moment, in dem es geschieht.",
    "Tout ce qui est notable, au moment où cela arrive.",
  ],
  audit: ["Audit log", "Prüfprotokoll", "Journal d’audit"],
  none: ["Nothing has happened yet", "Noch ist nichts geschehen", "Rien ne s’est encore passé"],
  none_why: [
    "Events appear here the moment they happen.",
    "Ereignisse erscheinen hier, sobald sie geschehen.",
    "Les événements apparaissent ici dès qu’ils se produisent.",
  ],
  none_match: ["No Event matches", "Kein Ereignis passt", "Aucun événement ne correspond"],
  type: ["Type", "Art", "Type"],
  any_type: ["Every type", "Jede Art", "Tous les types"],
  identity: ["Identity", "Identität", "Identité"],
  any_identity: ["Every Identity", "Jede Identität", "Toutes les identités"],
  event: ["Event", "Ereignis", "Événement"],
  open_message: ["Open the message", "Nachricht öffnen", "Ouvrir le message"],
  when: ["When", "Wann", "Quand"],
  id: ["Id", "Id", "Id"],
  data: ["Data", "Daten", "Données"],
  deliveries: ["Deliveries", "Zustellungen", "Livraisons"],
  deliveries_why: [
    "Where this Event was sent, each attempt, and what came back.",
    "Wohin dieses Ereignis ging, jeder Versuch und was zurückkam.",
    "Où cet événement a été envoyé, chaque essai, et ce qui est revenu.",
  ],
  no_webhook: [
    "{handle} has no Webhook, so nobody was told.",
    "{handle} hat keinen Webhook, also erfuhr es niemand.",
    "{handle} n’a pas de webhook : personne n’a été informé.",
  ],
  not_sent: [
    "Not sent here: this Webhook does not subscribe to {type}, or it came later.",
    "Nicht hierher: dieser Webhook abonniert {type} nicht, oder er kam später.",
    "Pas envoyé ici : ce webhook n’est pas abonné à {type}, ou il a été créé ensuite.",
  ],
  org_level: [
    "This concerns the account and reaches no Webhook.",
    "Das betrifft das Konto und erreicht keinen Webhook.",
    "Cela concerne le compte et n’atteint aucun webhook.",
  ],
  send_again: ["Send again", "Erneut senden", "Renvoyer"],
  sent_again: ["Queued again", "Erneut eingereiht", "Remis en file"],
  back: ["All activity", "Alle Aktivität", "Toute l’activité"],
  live_new: [
    { one: "{count} new Event", other: "{count} new Events" },
    { one: "{count} neues Ereignis", other: "{count} neue Ereignisse" },
    { one: "{count} nouvel événement", many: "{count} nouveaux événements", other: "{count} nouveaux événements" },
  ],
})
