/** Every page and its path. A page comes as a chunk of its own when it is first gone to. */
import { page } from "./router/Router.ts"

export const routes = [
  page("/", () => import("./home/HomePage.tsx")),
  page("/identities", () => import("./identity/IdentitiesPage.tsx")),
  page("/identities/new", () => import("./identity/NewIdentityPage.tsx")),
  page("/identities/:handle", () => import("./identity/IdentityPage.tsx")),
  // The account
  page("/vault", () => import("./vault/VaultPage.tsx")),
  page("/keys", () => import("./keys/KeysPage.tsx")),
  page("/keys/devices", () => import("./keys/DevicesPage.tsx")),
  page("/settings", () => import("./settings/SettingsPage.tsx")),
  page("/settings/terms", () => import("./settings/TermsPage.tsx")),
  page("/settings/data", () => import("./settings/DataPage.tsx")),
]
