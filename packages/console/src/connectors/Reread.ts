/** How the connectors of an Identity stand, read again; not what they say at their platforms, which may be over. */
import { client, keyOf } from "../client/Queries.ts"

export const standing = "GET /api/identities/:handle/connectors"

export const reread = (handle: string) =>
  client.invalidateQueries({ queryKey: keyOf(standing, { params: { handle } }), exact: true })
