/** Grants of apps on Identities (OAuth). */
import { type Capability, cascades, credential, kept, noHandlers, workState } from "../Capability.ts"

export const oauth = {
  name: "oauth",
  handlers: noHandlers,
  work: { identity: [], org: [] },
  queries: [],
  exports: [],
  tables: {
    client_grant: cascades(credential),
    grant_notice: cascades(workState),
    oauth_client: kept("the public metadata of an app"),
    oauth_request: cascades(credential),
    oauth_token: cascades(credential),
  },
} satisfies Capability
