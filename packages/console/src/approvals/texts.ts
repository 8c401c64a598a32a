import { texts } from "../texts/Texts.ts"

export const say = texts({
  waiting: [
    { one: "{count} message needs your approval.", other: "{count} messages need your approval." },
    { one: "{count} Nachricht braucht deine Freigabe.", other: "{count} Nachrichten brauchen deine Freigabe." },
    {
      one: "{count} message attend votre accord.",
      many: "{count} messages attendent votre accord.",
      other: "{count} messages attendent votre accord.",
    },
  ],
  why: [
    "{handle} wants to send these messages. Nothing is sent before you approve it. Requests expire after 7 days.",
    "{handle} möchte diese Nachrichten senden. Nichts wird gesendet, bevor du es freigibst. Anfragen verfallen nach 7 Tagen.",
    "{handle} souhaite envoyer ces messages. Rien n’est envoyé sans votre accord. Les demandes expirent au bout de 7 jours.",
  ],
  none: ["No messages to approve", "Keine Nachrichten zur Freigabe", "Aucun message à approuver"],
  none_why: [
    "If you require approval for this agent, the messages it wants to send appear here.",
    "Wenn du für diesen Agenten eine Freigabe verlangst, erscheinen hier die Nachrichten, die er senden möchte.",
    "Si vous exigez une approbation pour cet agent, les messages qu’il souhaite envoyer apparaissent ici.",
  ],
  review: ["Review", "Prüfen", "Examiner"],
  to: ["To", "An", "À"],
  asked: ["Requested", "Angefragt", "Demandé"],
  lapses: ["Expires", "Läuft ab", "Expire"],
  files: [
    { one: "{count} attachment", other: "{count} attachments" },
    { one: "{count} Anhang", other: "{count} Anhänge" },
    { one: "{count} pièce jointe", many: "{count} pièces jointes", other: "{count} pièces jointes" },
  ],
  nameless: ["Unnamed file", "Datei ohne Namen", "Fichier sans nom"],
  no_subject: ["(no subject)", "(kein Betreff)", "(sans objet)"],
  rule: ["Approval", "Freigabe", "Approbation"],
  rule_why: [
    "Choose whether messages sent with this agent’s own key need your approval first. Messages that you send yourself never do.",
    "Lege fest, ob Nachrichten, die mit dem Schlüssel dieses Agenten gesendet werden, erst deine Freigabe brauchen. Für deine eigenen Nachrichten gilt das nie.",
    "Choisissez si les messages envoyés avec la clé de cet agent requièrent d’abord votre accord. Vos propres messages n’en ont jamais besoin.",
  ],
  rule_none: ["Send without approval", "Ohne Freigabe senden", "Envoyer sans approbation"],
  rule_required: ["Require approval", "Freigabe verlangen", "Exiger une approbation"],
})
