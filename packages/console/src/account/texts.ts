import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Sign in", "Anmelden", "Se connecter"],
  heading: ["Sign in or sign up", "Anmelden oder registrieren", "Se connecter ou s’inscrire"],
  lead: [
    "We mail you a link. No password, and nothing to remember.",
    "Wir mailen dir einen Link. Kein Passwort, nichts zu merken.",
    "Nous vous envoyons un lien. Pas de mot de passe, rien à retenir.",
  ],
  email: ["Your email address", "Deine E-Mail-Adresse", "Votre adresse e-mail"],
  terms_before: ["I accept the", "Ich akzeptiere die", "J’accepte les"],
  terms: ["Terms of Service", "Nutzungsbedingungen", "conditions d’utilisation"],
  terms_after: ["(needed the first time)", "(beim ersten Mal nötig)", "(nécessaire la première fois)"],
  invite: ["Invitation code", "Einladungscode", "Code d’invitation"],
  invite_hint: [
    "Needed for a new account; existing ones sign in without it.",
    "Für ein neues Konto nötig; bestehende melden sich ohne an.",
    "Nécessaire pour un nouveau compte ; les comptes existants s’en passent.",
  ],
  closed: [
    "New accounts are not taken just now. Existing ones can sign in.",
    "Neue Konten werden gerade nicht angenommen. Bestehende können sich anmelden.",
    "Les nouveaux comptes ne sont pas acceptés pour l’instant. Les comptes existants peuvent se connecter.",
  ],
  send: ["Mail me a link", "Link zusenden", "M’envoyer un lien"],
  sent: ["Look into your mail", "Schau in deine Mail", "Consultez votre courrier"],
  sent_to: [
    "A link is on its way to {email}. It works once, for 15 minutes.",
    "Ein Link ist unterwegs zu {email}. Er gilt einmal, 15 Minuten lang.",
    "Un lien est en route vers {email}. Il fonctionne une fois, pendant 15 minutes.",
  ],
  sent_here: [
    "Open it in this browser; this page notices by itself.",
    "Öffne ihn in diesem Browser; diese Seite merkt es von selbst.",
    "Ouvrez-le dans ce navigateur ; cette page le remarque d’elle-même.",
  ],
  dev: ["Development: open the link", "Development: Link öffnen", "Development : ouvrir le lien"],
  other: ["Use another address", "Andere Adresse verwenden", "Utiliser une autre adresse"],
  insecure: [
    "The console needs https. Open it at its https address, or at localhost.",
    "Die Konsole braucht https. Öffne sie unter ihrer https-Adresse oder unter localhost.",
    "La console exige https. Ouvrez-la à son adresse https, ou sur localhost.",
  ],
  gate_title: ["New Terms of Service", "Neue Nutzungsbedingungen", "Nouvelles conditions d’utilisation"],
  gate: [
    "Version {version} is in force. The console opens when you accept it; your agents go on meanwhile.",
    "Version {version} gilt. Die Konsole öffnet sich, wenn du sie akzeptierst; deine Agenten laufen weiter.",
    "La version {version} est en vigueur. La console s’ouvre quand vous l’acceptez ; vos agents continuent.",
  ],
  gate_accepted: [
    "You accepted version {version}.",
    "Akzeptiert hast du Version {version}.",
    "Vous aviez accepté la version {version}.",
  ],
  gate_read: ["Read the Terms", "Bedingungen lesen", "Lire les conditions"],
  gate_accept: ["Accept", "Akzeptieren", "Accepter"],
  gate_or: ["Or, without accepting:", "Oder ohne zu akzeptieren:", "Ou, sans accepter :"],
  sign_out: ["Sign out", "Abmelden", "Se déconnecter"],
  take_along: ["Export everything", "Alles exportieren", "Tout exporter"],
  exporting: [
    "The export is being made. It can be downloaded here as soon as it is ready.",
    "Der Export wird erstellt. Er kann hier geladen werden, sobald er fertig ist.",
    "L’export est en cours. Il pourra être téléchargé ici dès qu’il sera prêt.",
  ],
  remove: ["Delete the account", "Konto löschen", "Supprimer le compte"],
  remove_why: [
    "Every Identity, its mail, its secrets and its keys go for good. Names are never given out again.",
    "Alle Identitäten, ihre Mail, Geheimnisse und Schlüssel verschwinden endgültig. Namen werden nie wieder vergeben.",
    "Toutes les identités, leur courrier, leurs secrets et leurs clés disparaissent définitivement. Les noms ne sont jamais redonnés.",
  ],
})
