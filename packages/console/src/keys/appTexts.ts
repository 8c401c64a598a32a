import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Connected apps", "Verbundene Apps", "Applications connectées"],
  lead: [
    "Apps that you let in, such as Claude or ChatGPT. What you change or end here holds from their next call on. Hosted apps call from their vendor’s addresses.",
    "Apps, die du hereingelassen hast, etwa Claude oder ChatGPT. Was du hier änderst oder beendest, gilt ab ihrem nächsten Aufruf. Gehostete Apps rufen von den Adressen ihres Anbieters auf.",
    "Les applications que vous avez laissées entrer, comme Claude ou ChatGPT. Ce que vous changez ou arrêtez ici vaut dès leur prochain appel. Les applications hébergées appellent depuis les adresses de leur fournisseur.",
  ],
  none: [
    "No app is connected. Add this service’s MCP address in an app to connect it.",
    "Keine App ist verbunden. Trage die MCP-Adresse dieses Dienstes in einer App ein, um sie zu verbinden.",
    "Aucune application n’est connectée. Ajoutez l’adresse MCP de ce service dans une application pour la connecter.",
  ],
  app: ["App", "App", "Application"],
  agents: ["Agents", "Agenten", "Agents"],
  rights: ["Rights", "Rechte", "Droits"],
  last_used: ["Last used", "Zuletzt benutzt", "Dernier usage"],
  until: ["Until", "Bis", "Jusqu’à"],
  actions: ["Actions", "Aktionen", "Actions"],
  never: ["never", "nie", "jamais"],
  whole: ["Whole account", "Das ganze Konto", "Tout le compte"],
  change: ["Change", "Ändern", "Modifier"],
  change_title: ["What may {name} do?", "Was darf {name}?", "Que peut faire {name} ?"],
  vault: [
    "(whoever controls the app can read every password)",
    "(wer die App kontrolliert, kann jedes Passwort lesen)",
    "(qui contrôle l’application peut lire chaque mot de passe)",
  ],
  end: ["End", "Beenden", "Arrêter"],
  end_title: ["End the access of {name}?", "Zugang von {name} beenden?", "Mettre fin à l’accès de {name} ?"],
  end_why: [
    "The app is refused from its next call on. It can be connected again.",
    "Die App wird ab ihrem nächsten Aufruf abgewiesen. Sie kann neu verbunden werden.",
    "L’application est refusée dès son prochain appel. Elle peut être reconnectée.",
  ],
  ended: ["The access of {name} has ended", "Der Zugang von {name} ist beendet", "L’accès de {name} est terminé"],
})
