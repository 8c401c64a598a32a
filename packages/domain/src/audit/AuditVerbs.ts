/** The verbs of sentences about audit records (`AuditSentences.ts`), in English, German and French. */
import type { InThree } from "../Phrases.ts"

/** `{o}` is replaced by the object. */
interface Verb {
  readonly done: InThree
  readonly tried: InThree
}

const verb = (enDone: string, en: string, deDone: string, de: string, frDone: string, fr: string): Verb => ({
  done: [`${enDone} {o}`, `hat {o} ${deDone}`, `${frDone} {o}`],
  tried: [`${en} {o}`, `{o} ${de}`, `${fr} {o}`],
})

export const verbs = {
  accept: verb("accepted", "accept", "angenommen", "annehmen", "a accepté", "accepter"),
  add: verb("added", "add", "hinzugefügt", "hinzufügen", "a ajouté", "ajouter"),
  approve: verb("approved", "approve", "freigegeben", "freigeben", "a approuvé", "approuver"),
  change: verb("changed", "change", "geändert", "ändern", "a modifié", "modifier"),
  close: verb("closed", "close", "abgeschlossen", "abschließen", "a clos", "clore"),
  collect: verb("completed", "complete", "abgeschlossen", "abschließen", "a terminé", "terminer"),
  connect: verb("connected", "connect", "verbunden", "verbinden", "a connecté", "connecter"),
  create: verb("created", "create", "erstellt", "erstellen", "a créé", "créer"),
  delete: verb("deleted", "delete", "gelöscht", "löschen", "a supprimé", "supprimer"),
  disconnect: verb("disconnected", "disconnect", "getrennt", "trennen", "a déconnecté", "déconnecter"),
  dismiss: verb("dismissed", "dismiss", "ausgeblendet", "ausblenden", "a masqué", "masquer"),
  download: verb("downloaded", "download", "heruntergeladen", "herunterladen", "a téléchargé", "télécharger"),
  end: verb("ended", "end", "beendet", "beenden", "a mis fin à", "mettre fin à"),
  lift: verb("lifted", "lift", "aufgehoben", "aufheben", "a levé", "lever"),
  mark: verb("marked", "mark", "markiert", "markieren", "a marqué", "marquer"),
  pause: verb(
    "paused or resumed",
    "pause or resume",
    "pausiert oder fortgesetzt",
    "pausieren oder fortsetzen",
    "a suspendu ou repris",
    "suspendre ou reprendre",
  ),
  publish: verb("published", "publish", "veröffentlicht", "veröffentlichen", "a publié", "publier"),
  read: verb("viewed", "view", "angesehen", "ansehen", "a consulté", "consulter"),
  reject: verb("rejected", "reject", "abgelehnt", "ablehnen", "a rejeté", "rejeter"),
  remove: verb("removed", "remove", "entfernt", "entfernen", "a retiré", "retirer"),
  renew: verb("renewed", "renew", "erneuert", "erneuern", "a renouvelé", "renouveler"),
  rotate: verb("rotated", "rotate", "erneuert", "erneuern", "a renouvelé", "renouveler"),
  request: verb("requested", "request", "angefordert", "anfordern", "a demandé", "demander"),
  reset: verb("reset", "reset", "zurückgesetzt", "zurücksetzen", "a réinitialisé", "réinitialiser"),
  restore: verb("restored", "restore", "wiederhergestellt", "wiederherstellen", "a restauré", "restaurer"),
  retry: verb("retried", "retry", "erneut versucht", "erneut versuchen", "a relancé", "relancer"),
  revoke: verb("revoked", "revoke", "widerrufen", "widerrufen", "a révoqué", "révoquer"),
  save: verb("saved", "save", "gespeichert", "speichern", "a enregistré", "enregistrer"),
  send: verb("sent", "send", "gesendet", "senden", "a envoyé", "envoyer"),
  test: verb("tested", "test", "getestet", "testen", "a testé", "tester"),
  verify: verb("verified", "verify", "geprüft", "prüfen", "a vérifié", "vérifier"),
  use: verb("used", "use", "benutzt", "benutzen", "a utilisé", "utiliser"),
  sendAgain: {
    done: ["sent {o} again", "hat {o} erneut gesendet", "a renvoyé {o}"],
    tried: ["send {o} again", "{o} erneut senden", "renvoyer {o}"],
  },
  signIn: {
    done: ["signed in{o}", "hat sich{o} angemeldet", "s’est connecté{o}"],
    tried: ["sign in{o}", "sich{o} anmelden", "se connecter{o}"],
  },
  signOut: {
    done: ["signed out{o}", "hat sich{o} abgemeldet", "s’est déconnecté{o}"],
    tried: ["sign out{o}", "sich{o} abmelden", "se déconnecter{o}"],
  },
} as const satisfies Readonly<Record<string, Verb>>
