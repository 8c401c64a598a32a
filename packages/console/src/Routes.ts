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
  // Where a refusal leads that says what its holder could allow.
  // Where a refusal leads that lacks a scope.
  page("/keys/:id", () => import("./keys/KeysPage.tsx")),
  page("/settings", () => import("./settings/SettingsPage.tsx")),
  page("/settings/limits", () => import("./settings/LimitsPage.tsx")),
  page("/settings/terms", () => import("./settings/TermsPage.tsx")),
  page("/settings/data", () => import("./settings/DataPage.tsx")),
  page("/identities/:handle/mail", () => import("./mail/MailPage.tsx")),
  page("/identities/:handle/mail/settings", () => import("./mail/MailSettingsPage.tsx")),
  page("/identities/:handle/mail/approvals", () => import("./mail/ApprovalsPage.tsx")),
  page("/identities/:handle/mail/drafts", () => import("./compose/DraftsPage.tsx")),
  page("/identities/:handle/mail/compose", () => import("./compose/ComposePage.tsx")),
  page("/identities/:handle/mail/threads/:id", () => import("./mail/ThreadPage.tsx")),
  page("/identities/:handle/mail/programs", () => import("./programs/ProgramsPage.tsx")),
  page("/identities/:handle/mail/:id", () => import("./mail/MessagePage.tsx")),
  page("/identities/:handle/webhooks", () => import("./webhooks/WebhooksPage.tsx")),
  page("/identities/:handle/webhooks/new", () => import("./webhooks/NewWebhookPage.tsx")),
  page("/identities/:handle/webhooks/:id", () => import("./webhooks/WebhookPage.tsx")),
  page("/identities/:handle/tunnel", () => import("./tunnel/TunnelPage.tsx")),
  page("/identities/:handle/connectors", () => import("./connectors/ConnectorsPage.tsx")),
  page("/identities/:handle/connectors/:platform", () => import("./connectors/ConnectorPage.tsx")),
  page("/identities/:handle/connectors/:platform/connect", () => import("./connectors/ConnectPage.tsx")),
  page("/connectors/callback", () => import("./connectors/CallbackPage.tsx")),
  page("/identities/:handle/profile", () => import("./card/ProfilePage.tsx")),
  page("/identities/:handle/settings", () => import("./identity/IdentitySettingsPage.tsx")),
  page("/activity", () => import("./events/ActivityPage.tsx")),
  page("/activity/audit", () => import("./audit/AuditPage.tsx")),
  page("/activity/:id", () => import("./events/EventPage.tsx")),
]
