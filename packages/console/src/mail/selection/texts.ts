import { texts } from "../../texts/Texts.ts"

export const say = texts({
  archive: ["Archive", "Archivieren", "Archiver"],
  unarchive: ["Move out of archive", "Aus dem Archiv holen", "Désarchiver"],
  none_archived: ["No archived conversations", "Keine archivierten Unterhaltungen", "Aucune conversation archivée"],
  none_archived_why: [
    "A conversation that you archive appears here until a new message arrives.",
    "Archivierte Unterhaltungen erscheinen hier, bis eine neue Nachricht eintrifft.",
    "Les conversations archivées apparaissent ici jusqu’à l’arrivée d’un nouveau message.",
  ],
  undo: ["Undo", "Rückgängig", "Annuler"],
  not_changed: [
    "The change could not be saved. Try again.",
    "Die Änderung konnte nicht gespeichert werden. Versuche es erneut.",
    "La modification n’a pas pu être enregistrée. Réessayez.",
  ],
  marked_read: ["Marked as read", "Als gelesen markiert", "Marqué comme lu"],
  marked_unread: ["Marked as unread", "Als ungelesen markiert", "Marqué comme non lu"],
  marked_flagged: ["Flagged", "Markiert", "Marqué"],
  marked_plain: ["Flag removed", "Markierung entfernt", "Marquage retiré"],
  archived_done: ["Archived", "Archiviert", "Archivé"],
  unarchived_done: ["Moved out of the archive", "Aus dem Archiv geholt", "Désarchivé"],
  removed_done: ["Deleted", "Gelöscht", "Supprimé"],
  selection: ["Selected messages", "Ausgewählte Nachrichten", "Messages sélectionnés"],
  selected: [
    { one: "{count} selected", other: "{count} selected" },
    { one: "{count} ausgewählt", other: "{count} ausgewählt" },
    { one: "{count} sélectionné", many: "{count} sélectionnés", other: "{count} sélectionnés" },
  ],
  select_one: ["Select {name}", "{name} auswählen", "Sélectionner {name}"],
  select_all: ["Select all", "Alle auswählen", "Tout sélectionner"],
  select_none: ["Clear selection", "Auswahl aufheben", "Effacer la sélection"],
})
