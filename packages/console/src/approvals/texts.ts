import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Waiting for you", "Wartet auf dich", "Vous attend"],
  waiting: [
    { one: "{count} message wants your approval.", other: "{count} messages want your approval." },
    { one: "{count} Nachricht braucht deine Freigabe.", other: "{count} Nachrichten brauchen deine Freigabe." },
    {
      one: "{count} message attend votre accord.",
      many: "{count} messages attendent votre accord.",
      other: "{count} messages attendent votre accord.",
    },
  ],
  why: [
    "{handle} wants to send these. Nothing goes out before you approve it; what nobody answers lapses.",
    "{handle} will das senden. Nichts geht hinaus, bevor du es freigibst; was niemand beantwortet, verfällt.",
    "{handle} veut envoyer ceci. Rien ne part avant votre accord ; sans réponse, la demande expire.",
  ],
  none: ["Nothing waits for you", "Nichts wartet auf dich", "Rien ne vous attend"],
  none_why: [
    "What this agent wants to send stands here where you asked to approve it first.",
    "Was dieser Agent senden will, steht hier, wenn du es vorher freigeben willst.",
    "Ce que cet agent veut envoyer apparaît ici si vous avez demandé à l’approuver.",
  ],
  to: ["To", "An", "À"],
  asked: ["Asked", "Gefragt", "Demandé"],
  lapses: ["Lapses", "Verfällt", "Expire"],
  files: [
    { one: "{count} attachment", other: "{count} attachments" },
    { one: "{count} Anhang", other: "{count} Anhänge" },
    { one: "{count} pièce jointe", many: "{count} pièces jointes", other: "{count} pièces jointes" },
  ],
  read: ["Read it", "Lesen", "Lire"],
  no_subject: ["(no subject)", "(kein Betreff)", "(sans objet)"],
  approve: ["Approve and send", "Freigeben und senden", "Approuver et envoyer"],
  approved: ["“{subject}” is on its way", "„{subject}“ ist unterwegs", "« {subject} » est en route"],
  refuse: ["Refuse", "Ablehnen", "Refuser"],
  refuse_title: ["Refuse “{subject}”?", "„{subject}“ ablehnen?", "Refuser « {subject} » ?"],
  refuse_why: [
    "It goes nowhere. The agent is told, with your reason.",
    "Es geht nirgendwohin. Der Agent erfährt es, mit deinem Grund.",
    "Il ne part pas. L’agent l’apprend, avec votre raison.",
  ],
  reason: ["Reason", "Grund", "Raison"],
  refused: ["“{subject}” was refused", "„{subject}“ wurde abgelehnt", "« {subject} » a été refusé"],
  rule: ["Approval", "Freigabe", "Approbation"],
  rule_why: [
    "Whether what this agent’s own key sends waits for a person first. What you send does not.",
    "Ob das, was der eigene Schlüssel dieses Agenten sendet, erst auf einen Menschen wartet. Was du sendest, nicht.",
    "Si ce que la clé de cet agent envoie attend d’abord une personne. Ce que vous envoyez n’attend pas.",
  ],
  rule_none: ["Sends at once", "Sendet sofort", "Envoie aussitôt"],
  rule_required: ["Waits for a person", "Wartet auf einen Menschen", "Attend une personne"],
})
