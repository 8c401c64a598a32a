/**
 * The documents that prove an Identity at its Tunnel's hostname: the signed directory of its key (Web Bot Auth) and its DID
 * document. The edge answers them itself, since an agent could forge its own.
 */
import { Addresses, tunnelDid } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import { Clock, Context, Effect, Layer } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { PublicJwk } from "@svc/domain/proof/SigningKey"
import { didDocument } from "./DidDocument.ts"
import type { ProofSubject } from "./IssuePermission.ts"
import { SigningKeys } from "./SigningKeys.ts"
import {
  directoryFields,
  directoryOf,
  directoryPath,
  type DirectorySignature,
  directoryType,
  signDirectory,
} from "./WebBotAuth.ts"

const didPath = "/.well-known/did.json"
const paths: ReadonlySet<string> = new Set([directoryPath, didPath])

/** Returns the path of the document that a request names, or undefined. */
export const documentPath = (method: string, target: string): string | undefined => {
  if (method !== "GET" && method !== "HEAD") return undefined
  // Almost every request ends here.
  if (!target.startsWith("/.well-known/")) return undefined
  const [path] = target.split("?", 1)
  return paths.has(path!) ? path : undefined
}

export interface TunnelDocument {
  readonly contentType: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

const attempts = 3
/** Keys in a directory. Verifiers read few kilobytes, so keys of many rotations in a few minutes have no place. */
const keysAtMost = 10

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const book = yield* Addresses
  const keys = yield* SigningKeys

  /**
   * Returns the directory. Signing comes first and the check after it, so that a directory is never signed after a stop.
   * During a stop the directory has no signatures. A key that was just rotated stays listed, since what it signed is
   * valid for a minute; it signed the directory before the rotation.
   */
  const directory = Effect.fnUntraced(function* (owner: ProofSubject) {
    for (let n = 0; n < attempts; n++) {
      const key = yield* keys.signing(owner)
      if (key === undefined) return undefined
      const now = yield* Clock.currentTimeMillis
      const signed = yield* signDirectory(book, owner.handle, key, now)
      const since = new Date(now - Timing.directoryOverlapMillis)
      const rows = yield* orUnavailable(sql<{
        kid: string
        jwk: PublicJwk
        directory: DirectorySignature | null
        stopped: boolean
      }>`
        select k.kid, k.jwk, k.directory, m.stopped_at is not null as stopped
        from identity i join mailbox m on m.identity_id = i.id join signing_key k on k.identity_id = i.id
        where i.id = ${owner.id}::uuid and i.status = 'ready' and k.origin = 'service'
          and (k.retired_at is null or (k.retired_at > ${since}::timestamptz and k.directory is not null))
        order by k.retired_at desc nulls first limit ${keysAtMost}`)
      const [current] = rows
      if (current?.kid !== key.kid) continue
      const found: TunnelDocument = {
        contentType: directoryType,
        body: directoryOf(rows.map(({ jwk }) => jwk)),
        headers: current.stopped ? {} : directoryFields(rows.map(({ directory }) => directory ?? signed)),
      }
      return found
    }
    return undefined
  })

  const didOf = Effect.fnUntraced(function* (owner: ProofSubject) {
    const published = yield* keys.published(canonical(owner.handle))
    if (published === undefined) return undefined
    const found: TunnelDocument = {
      contentType: "application/did+json",
      body: JSON.stringify(didDocument(book, published, tunnelDid(book, owner.handle))),
      headers: {},
    }
    return found
  })

  return {
    /** Returns a document of a ready Identity; undefined if the Identity does not exist. */
    read: (path: string, owner: ProofSubject) => (path === directoryPath ? directory(owner) : didOf(owner)),
  }
})

export class TunnelDocuments extends Context.Service<TunnelDocuments, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/TunnelDocuments",
) {
  static readonly layer = Layer.effect(TunnelDocuments, make).pipe(Layer.provide(SigningKeys.layer))
}
