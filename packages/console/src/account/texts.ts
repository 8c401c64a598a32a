import { texts } from "../texts/Texts.ts"

export const say = texts({
  heading: ["Sign in or sign up", "Anmelden oder registrieren", "Se connecter ou s’inscrire"],
  lead: [
    "We email you a sign-in link. You do not need a password.",
    "Wir senden dir einen Anmeldelink per E-Mail. Du brauchst kein Passwort.",
    "Nous vous envoyons un lien de connexion par e-mail. Aucun mot de passe n’est nécessaire.",
  ],
  email: ["Your email address", "Deine E-Mail-Adresse", "Votre adresse e-mail"],
  terms_before: ["I accept the", "Ich akzeptiere die", "J’accepte les"],
  terms: ["Terms of Service", "Nutzungsbedingungen", "conditions d’utilisation"],
  terms_after: ["(required for new accounts)", "(für neue Konten erforderlich)", "(requis pour un nouveau compte)"],
  invite: ["Invitation code", "Einladungscode", "Code d’invitation"],
  invite_hint: ["Required to create an account.", "Für neue Konten erforderlich.", "Requis pour créer un compte."],
  closed: [
    "Registration is closed. You can still sign in to an existing account.",
    "Die Registrierung ist geschlossen. Mit einem bestehenden Konto kannst du dich anmelden.",
    "Les inscriptions sont fermées. Vous pouvez vous connecter à un compte existant.",
  ],
  send: ["Email me a sign-in link", "Anmeldelink zusenden", "Recevoir un lien de connexion"],
  sent: ["Check your email", "Sieh in deinem Postfach nach", "Consultez votre messagerie"],
  sent_to: [
    "We sent a sign-in link to {email}. It expires in 15 minutes and works once.",
    "Wir haben einen Anmeldelink an {email} gesendet. Er gilt 15 Minuten und nur einmal.",
    "Nous avons envoyé un lien de connexion à {email}. Il est valable 15 minutes et une seule fois.",
  ],
  sent_here: [
    "Open the link in this browser. This page then continues automatically.",
    "Öffne den Link in diesem Browser. Diese Seite fährt dann automatisch fort.",
    "Ouvrez le lien dans ce navigateur. Cette page continue ensuite automatiquement.",
  ],
  dev: ["Development: open link", "Development: Link öffnen", "Development : ouvrir le lien"],
  other: ["Use a different address", "Andere Adresse verwenden", "Utiliser une autre adresse"],
  insecure: [
    "The console requires HTTPS. Open it at its https address or at localhost.",
    "Die Konsole erfordert HTTPS. Öffne sie unter ihrer https-Adresse oder unter localhost.",
    "La console nécessite HTTPS. Ouvrez-la à son adresse https ou sur localhost.",
  ],
  gate_title: ["New Terms of Service", "Neue Nutzungsbedingungen", "Nouvelles conditions d’utilisation"],
  gate: [
    "Version {version} is in effect. Accept it to continue using the console. Your agents keep running.",
    "Version {version} ist in Kraft. Akzeptiere sie, um die Konsole weiter zu nutzen. Deine Agenten laufen weiter.",
    "La version {version} est en vigueur. Acceptez-la pour continuer à utiliser la console. Vos agents continuent de fonctionner.",
  ],
  gate_accepted: [
    "You last accepted version {version}.",
    "Zuletzt hast du Version {version} akzeptiert.",
    "Vous aviez accepté la version {version}.",
  ],
  gate_read: ["Read the Terms of Service", "Nutzungsbedingungen lesen", "Lire les conditions d’utilisation"],
  gate_accept: ["Accept", "Akzeptieren", "Accepter"],
  gate_or: [
    "You can also do this without accepting:",
    "Das geht auch, ohne zu akzeptieren:",
    "Vous pouvez aussi, sans accepter :",
  ],
  sign_out: ["Sign out", "Abmelden", "Se déconnecter"],
  take_along: ["Export all data", "Alle Daten exportieren", "Exporter toutes les données"],
  exporting: [
    "Your export is being prepared. You can download it here when it is ready.",
    "Dein Export wird vorbereitet. Du kannst ihn hier herunterladen, sobald er fertig ist.",
    "Votre export est en préparation. Vous pourrez le télécharger ici dès qu’il sera prêt.",
  ],
  remove: ["Delete account", "Konto löschen", "Supprimer le compte"],
  remove_why: [
    "This permanently deletes all Identities with their mail, secrets and keys. Their names are never assigned again.",
    "Alle Identitäten werden mit ihren E-Mails, Geheimnissen und Schlüsseln endgültig gelöscht. Ihre Namen werden nie erneut vergeben.",
    "Toutes les identités sont définitivement supprimées, avec leurs e-mails, secrets et clés. Leurs noms ne sont jamais réattribués.",
  ],
})
