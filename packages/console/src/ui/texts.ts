import { texts } from "../texts/Texts.ts"

export const say = texts({
  copy: ["Copy", "Kopieren", "Copier"],
  copy_what: ["Copy {what}", "{what} kopieren", "Copier {what}"],
  copied_what: [
    "{what} copied to clipboard",
    "{what} in die Zwischenablage kopiert",
    "{what} copié dans le presse-papiers",
  ],
  not_copied: [
    "Your browser blocked copying",
    "Dein Browser hat das Kopieren blockiert",
    "Votre navigateur a bloqué la copie",
  ],
  show: ["Show", "Anzeigen", "Afficher"],
  hide: ["Hide", "Verbergen", "Masquer"],
  shown: ["shown", "wird angezeigt", "affiché"],
  masked: ["hidden", "verborgen", "masqué"],
  close: ["Close", "Schließen", "Fermer"],
  cancel: ["Cancel", "Abbrechen", "Annuler"],
  retry: ["Try again", "Erneut versuchen", "Réessayer"],
  more: ["Show more", "Mehr anzeigen", "Afficher plus"],
  loading: ["Loading", "Wird geladen", "Chargement"],
  request: ["Request ID", "Anfrage-ID", "ID de la requête"],
  unreachable: ["Can’t reach the service", "Der Dienst ist nicht erreichbar", "Le service est injoignable"],
  unreachable_why: [
    "Check your connection, then try again. This page may be out of date.",
    "Prüfe deine Verbindung und versuche es dann erneut. Diese Seite ist möglicherweise nicht aktuell.",
    "Vérifiez votre connexion, puis réessayez. Cette page n’est peut-être pas à jour.",
  ],
  broken: ["Something went wrong", "Etwas ist schiefgelaufen", "Une erreur s’est produite"],
  fix_call: [
    "Correct your input, then try again.",
    "Korrigiere deine Eingabe und versuche es dann erneut.",
    "Corrigez votre saisie, puis réessayez.",
  ],
  wait: [
    "Wait a moment, then try again.",
    "Warte einen Moment und versuche es dann erneut.",
    "Patientez un instant, puis réessayez.",
  ],
  wait_seconds: [
    { one: "Try again in {count} second.", other: "Try again in {count} seconds." },
    { one: "Versuche es in {count} Sekunde erneut.", other: "Versuche es in {count} Sekunden erneut." },
    {
      one: "Réessayez dans {count} seconde.",
      many: "Réessayez dans {count} secondes.",
      other: "Réessayez dans {count} secondes.",
    },
  ],
  stop: ["Trying again will not help.", "Ein weiterer Versuch hilft nicht.", "Réessayer ne changera rien."],
  what_it_means: ["Learn more", "Mehr erfahren", "En savoir plus"],
  type_to_confirm: ["Type {what} to confirm", "Gib zur Bestätigung {what} ein", "Saisissez {what} pour confirmer"],
  optional: ["optional", "optional", "facultatif"],
  dismiss: ["Dismiss", "Ausblenden", "Ignorer"],
  download: ["Download", "Herunterladen", "Télécharger"],
  save: ["Save", "Speichern", "Enregistrer"],
})
