/** The in-memory state of a Connector's actor: the Identity, its connection to the platform and its pauses. */
import type { Capability, ConnectedVia, PlatformName } from "@svc/domain/connectors/Connector"
import { Effect, Redacted } from "effect"
import type { OwnIdentity } from "../actor/Write.ts"
import { type Place, Sealing } from "../sealing/Sealing.ts"
import { Reads } from "../store/Database.ts"
import type { Account, Credential } from "./platforms/Platform.ts"

export interface Connection {
  /** Identifies one connection; connecting again creates a new id. */
  readonly id: string
  readonly account: Account
  readonly via: ConnectedVia
  readonly capabilities: ReadonlyArray<Capability>
  readonly credential: Credential
  readonly status: "connected" | "stopped"
  readonly disclosed: boolean
  /** Whether the profile was ever marked as automated. */
  readonly declared: boolean
  /** The changes that the Connector made to the profile. */
  readonly disclosure: string | null
  readonly mark: string | null
  readonly lastError: string | null
  readonly pollWaitMillis: number
  readonly pollDueAt: Date | null
  readonly checkDueAt: Date | null
}

export interface ConnectorState {
  readonly canonical: string
  readonly platform: PlatformName
  /** Undefined before the Identity is created and after it is removed. Pending revocations outlive the Identity. */
  readonly identity: OwnIdentity | undefined
  readonly connection: Connection | undefined
  /** The pause of this Connector and the pause of all Connectors of the Identity. */
  readonly pause: { readonly own: boolean; readonly everyone: boolean }
}

export const isPaused = ({ pause }: Pick<ConnectorState, "pause">): boolean => pause.own || pause.everyone

/** Returns the sealing context of a credential or note, which is bound to one connection of one Identity. */
export const sealedPlace = (
  owner: { readonly identityId: string; readonly orgId: string; readonly platform: string },
  connection: string,
  column: string,
): Place => ({
  table: "connector",
  column,
  row: connection,
  org: owner.orgId,
  names: [owner.identityId, owner.platform],
})

export const bytesOf = (text: string) => new TextEncoder().encode(text)
export const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

interface Row {
  readonly id: string
  readonly handle: string
  readonly org_id: string
  readonly data_key: Uint8Array
  readonly own: boolean | null
  readonly everyone: boolean
  readonly connection_id: string | null
  readonly account: string
  readonly account_id: string
  readonly service: string
  readonly connected_via: ConnectedVia
  readonly capabilities: ReadonlyArray<Capability>
  readonly credential: Uint8Array
  readonly status: Connection["status"]
  readonly disclosed: boolean
  readonly declared: boolean
  readonly disclosure: string | null
  readonly mark: string | null
  readonly last_error: string | null
  readonly poll_wait_millis: number
  readonly poll_due_at: Date | null
  readonly check_due_at: Date | null
}

/** Loads the state of a Connector's actor from the store. */
export const load = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  return Effect.fnUntraced(function* (canonical: string, platform: PlatformName) {
    const [row] = yield* sql<Row>`
      select i.id, i.handle, i.org_id, o.data_key, p.paused as own,
        -- A platform that came later than the pause of all is paused too.
        coalesce(p.everyone, (select bool_or(q.everyone) from connector_pause q where q.identity_id = i.id), false) as everyone,
        c.connection_id, c.account, c.account_id, c.service, c.connected_via, c.capabilities, c.credential, c.status,
        c.disclosed, c.declared, c.disclosure, c.mark, c.last_error, c.poll_wait_millis, c.poll_due_at, c.check_due_at
      from identity i join org o on o.id = i.org_id
      left join connector_pause p on p.identity_id = i.id and p.platform = ${platform}
      left join connector c on c.identity_id = i.id and c.platform = ${platform}
      where i.canonical = ${canonical}`
    if (row === undefined) {
      const none: ConnectorState = {
        canonical,
        platform,
        identity: undefined,
        connection: undefined,
        pause: { own: false, everyone: false },
      }
      return none
    }
    const dataKey = yield* Effect.orDie(sealing.openDataKey(row.org_id, row.data_key))
    const identity: OwnIdentity = { id: row.id, handle: row.handle, orgId: row.org_id, dataKey }
    const state: ConnectorState = {
      canonical,
      platform,
      identity,
      pause: { own: row.own ?? false, everyone: row.everyone },
      connection:
        row.connection_id === null
          ? undefined
          : {
              id: row.connection_id,
              account: { name: row.account, id: row.account_id, service: row.service },
              via: row.connected_via,
              capabilities: row.capabilities,
              credential: Redacted.make(
                textOf(
                  yield* Effect.orDie(
                    sealing.open(
                      dataKey,
                      sealedPlace({ identityId: row.id, orgId: row.org_id, platform }, row.connection_id, "credential"),
                      row.credential,
                    ),
                  ),
                ),
              ),
              status: row.status,
              disclosed: row.disclosed,
              declared: row.declared,
              disclosure: row.disclosure,
              mark: row.mark,
              lastError: row.last_error,
              pollWaitMillis: row.poll_wait_millis,
              pollDueAt: row.poll_due_at,
              checkDueAt: row.check_due_at,
            },
    }
    return state
  })
})
