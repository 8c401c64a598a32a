/** Refetches the status of connectors, but not their posts, which may no longer be available. */
import { client, keyOf } from "../client/Queries.ts"

export const standing = "GET /api/identities/:handle/connectors"

export const reread = (handle: string) =>
  client.invalidateQueries({ queryKey: keyOf(standing, { params: { handle } }), exact: true })
