/**
 * Records rejected credentials. A credential that once was valid (a revoked or expired key, an expired session, an app
 * whose access ended) is recorded for its account; an unknown one belongs to no account. The owner is looked up once a
 * minute.
 */
import { hash } from "node:crypto"
import type { AuditActor, AuditSource } from "@svc/domain/audit/AuditRecord"
import { kindOf } from "@svc/domain/account/Token"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Audit } from "./Audit.ts"

interface RefusedCredential {
  readonly action: string
  readonly code: string
  readonly source: AuditSource
  readonly requestId: string | null
}

interface Owner {
  readonly org: string
  readonly actor: AuditActor
  readonly identity: { readonly id: string; readonly handle: string } | null
}

interface NoIdentity {
  readonly org_id: string
  readonly id: string
  readonly name: null
  readonly identity_id: null
  readonly handle: null
}

const knownMillis = 60_000
/** Maximum number of remembered hashes, because anyone can invent credentials. */
const knownAtMost = 10_000

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const audit = yield* Audit
  const known = new Map<string, { readonly until: number; readonly owner: Owner | undefined }>()

  /** Returns the owner or former owner of a credential. */
  const ownerOf = Effect.fnUntraced(function* (token: string) {
    const kind = kindOf(token)
    if (kind === undefined) return undefined
    const digest = hash("sha256", token, "hex")
    const now = yield* Clock.currentTimeMillis
    const present = known.get(digest)
    if (present !== undefined && present.until > now) return present.owner
    const rows =
      kind === "admin_key" || kind === "identity_key"
        ? yield* orUnavailable(sql<{
            org_id: string
            id: string
            name: string
            client: null
            identity_id: string | null
            handle: string | null
          }>`
            select k.org_id, k.id, k.name, null as client, k.identity_id, i.handle from api_key k
            left join identity i on i.id = k.identity_id where k.token_hash = decode(${digest}, 'hex')`)
        : kind === "session"
          ? yield* orUnavailable(sql<NoIdentity & { client: null }>`
              select org_id, id, null as name, null as client, null as identity_id, null as handle from session
              where token_hash = decode(${digest}, 'hex')`)
          : // Access tokens of a Grant are stored for some time after they expire.
            yield* orUnavailable(sql<NoIdentity & { client: string }>`
              select g.org_id, g.id, null as name, g.client_name as client, null as identity_id, null as handle
              from oauth_token t join client_grant g on g.id = t.grant_id where t.hash = decode(${digest}, 'hex')`)
    const row = rows[0]
    const owner: Owner | undefined = row && {
      org: row.org_id,
      actor: { kind, id: row.id, name: row.name, client: row.client },
      identity: row.identity_id === null || row.handle === null ? null : { id: row.identity_id, handle: row.handle },
    }
    if (known.size >= knownAtMost) known.clear()
    known.set(digest, { until: now + knownMillis, owner })
    return owner
  })

  const record = (credential: Redacted.Redacted<string>, what: RefusedCredential, outcome: "allowed" | "refused") =>
    ownerOf(Redacted.value(credential)).pipe(
      Effect.flatMap((owner) =>
        owner === undefined
          ? Effect.void
          : audit.record({
              ...owner,
              class: "auth",
              action: what.action,
              target: null,
              outcome,
              code: outcome === "allowed" ? null : what.code,
              scope: null,
              source: what.source,
              requestId: what.requestId,
            }),
      ),
      // If the store is unreachable now, it rejected the credential itself a moment ago.
      Effect.catchTag("unavailable", () => Effect.void),
    )

  return {
    turnedAway: (credential: Redacted.Redacted<string>, what: RefusedCredential) => record(credential, what, "refused"),
    /** Records that a credential was issued to a caller who cannot be identified otherwise. */
    handedOut: (credential: Redacted.Redacted<string>, what: Omit<RefusedCredential, "code">) =>
      record(credential, { ...what, code: "" }, "allowed"),
  }
})

export class RefusedCredentials extends Context.Service<RefusedCredentials, Effect.Success<typeof make>>()(
  "@svc/cluster/audit/RefusedCredentials",
) {
  static readonly layer = Layer.effect(RefusedCredentials, make)
}
