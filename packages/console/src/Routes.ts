/** Every page and its path. A page comes as a chunk of its own when it is first gone to. */
import { page } from "./router/Router.ts"

export const routes = [
  page("/", () => import("./home/HomePage.tsx")),
  page("/identities", () => import("./identity/IdentitiesPage.tsx")),
  page("/identities/new", () => import("./identity/NewIdentityPage.tsx")),
  page("/identities/:handle", () => import("./identity/IdentityPage.tsx")),
]
