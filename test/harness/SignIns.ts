/** Sign-ins of Identities, stored without a site. */
import type { Writes } from "@svc/cluster/store/Database"

/** Stores sign-ins at a site that wait for approval for the given time. */
export const insertSignIn = (
  sql: Writes["Service"],
  handle: string,
  { expires = "1 day", count = 1 }: { readonly expires?: string; readonly count?: number } = {},
) => sql<{ readonly id: string }>`
  insert into agent_sign_in (id, identity_id, client_id, client_name, redirect, site, scopes, status, created_at, expires_at,
                             challenge, algorithm, credential_kind, credential_id)
  select uuidv7(), id, 'https://shop.example/client.json', 'Shop', 'https://shop.example/callback', 'shop.example',
         '{openid}', 'awaiting_approval', now(), now() + ${expires}::interval, 'x', 'RS256', 'identity_key', uuidv7()
  from identity, generate_series(1, ${count}::int) where handle = ${handle} returning id`
