import { texts } from "../texts/Texts.ts"

export const say = texts({
  title: ["Connected apps", "Verbundene Apps", "Applications connectées"],
  lead: [
    "Apps with access to your agents, such as Claude or ChatGPT. Changes apply from an app’s next call.",
    "Apps mit Zugriff auf deine Agenten, etwa Claude oder ChatGPT. Änderungen gelten ab dem nächsten Aufruf einer App.",
    "Applications ayant accès à vos agents, comme Claude ou ChatGPT. Les modifications s’appliquent dès leur prochain appel.",
  ],
  none: [
    "No connected apps. To connect one, add this service’s MCP address in the app.",
    "Keine verbundenen Apps. Trage die MCP-Adresse dieses Dienstes in einer App ein, um sie zu verbinden.",
    "Aucune application connectée. Pour en connecter une, ajoutez-y l’adresse MCP de ce service.",
  ],
  app: ["App", "App", "Application"],
  agents: ["Agents", "Agenten", "Agents"],
  rights: ["Permissions", "Berechtigungen", "Autorisations"],
  last_used: ["Last used", "Zuletzt verwendet", "Dernière utilisation"],
  until: ["Expires", "Läuft ab", "Expire"],
  actions: ["Actions", "Aktionen", "Actions"],
  never: ["Never", "Nie", "Jamais"],
  whole: ["Whole account", "Ganzes Konto", "Tout le compte"],
  change: ["Edit", "Bearbeiten", "Modifier"],
  change_title: ["Edit access of {name}", "Zugriff von {name} bearbeiten", "Modifier l’accès de {name}"],
  vault: [
    "(allows the app to read every password)",
    "(erlaubt der App, alle Passwörter zu lesen)",
    "(permet à l’application de lire tous les mots de passe)",
  ],
  end: ["Revoke", "Widerrufen", "Révoquer"],
  end_title: ["Revoke access of {name}?", "Zugriff von {name} widerrufen?", "Révoquer l’accès de {name} ?"],
  end_why: [
    "The app loses access immediately. You can connect it again later.",
    "Die App verliert sofort den Zugriff. Du kannst sie später neu verbinden.",
    "L’application perd aussitôt l’accès. Vous pourrez la reconnecter plus tard.",
  ],
  ended: ["Access of {name} revoked", "Zugriff von {name} widerrufen", "Accès de {name} révoqué"],
})
