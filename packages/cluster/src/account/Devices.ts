/**
 * Device login (RFC 8628): a terminal starts it, the account holder decides, and the terminal collects the key in
 * exactly one response. Each transition is one statement on the locked row, so of two concurrent ones the second sees
 * the outcome of the first.
 */
import { randomBytes, randomInt } from "node:crypto"
import {
  type DeviceApproval,
  deviceMillis,
  type DeviceStart,
  type DeviceStatus,
  type DeviceView,
  displayUserCode,
  pollSeconds,
  userCodeAlphabet,
  userCodeOf,
} from "@svc/domain/account/Device"
import { type RequestedRights, type judgeRights } from "@svc/domain/account/KeyRights"
import { everything, includes, type Scopes, scopesOf } from "@svc/domain/account/Scope"
import { type Initiator, system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import {
  AuthorizationPending,
  DeviceAuthorizationSettled,
  DeviceCodeDenied,
  DeviceCodeExpired,
  DeviceCodeInvalid,
  DeviceCodeUsed,
  NotFound,
  ScopeExceeds,
  SlowDown,
} from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer, Result } from "effect"
import { keyColumns, type KeyRow, keyView } from "../credentials/KeyView.ts"
import { mint, mintKey, revokeKeys, sha256 } from "../credentials/CredentialMint.ts"
import { endOf, joinCreator, creatorColumns, type CreatorRow } from "../credentials/Creator.ts"
import type { AuditNote } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { type Place, Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { roomForKey } from "./ApiKeys.ts"

type StoredStatus = Exclude<DeviceStatus, "expired">

interface ViewRow {
  readonly user_code: string
  readonly name: string
  readonly client: string | null
  readonly scopes: string | null
  readonly expires_in_days: number | null
  readonly status: StoredStatus
  readonly created_at: Date
  readonly expires_at: Date
}

interface PollRow extends ViewRow {
  readonly id: string
  readonly device_hash: Uint8Array
  readonly collected: boolean
  readonly too_fast: boolean
  readonly interval_seconds: number
  readonly sealed_key: Uint8Array | null
  readonly org_id: string | null
  readonly key_id: string | null
}

interface CollectedRow extends KeyRow, CreatorRow {
  readonly data_key: Uint8Array
}

interface Asking {
  readonly id: string
  readonly name: string
  readonly device_hash: Uint8Array
  readonly scopes: string | null
  readonly expires_in_days: number | null
  readonly data_key: Uint8Array
}

type Judge = (requested: RequestedRights) => ReturnType<typeof judgeRights>

/** Returns the rights of the key: the requested ones without those that the approver removed. */
const within = (
  asking: Pick<Asking, "scopes" | "expires_in_days">,
  given: DeviceApproval,
): Result.Result<RequestedRights, ScopeExceeds> => {
  const scopes = given.scopes ?? (asking.scopes === null ? undefined : scopesOf(asking.scopes).names)
  const days = given.expires_in_days ?? asking.expires_in_days ?? undefined
  if (
    given.scopes !== undefined &&
    !includes(scopesOf(asking.scopes ?? everything), scopesOf(given.scopes.join(" ")))
  ) {
    return Result.fail(new ScopeExceeds({ detail: "The approval contains scopes that the device did not request." }))
  }
  if (asking.expires_in_days !== null && days !== undefined && days > asking.expires_in_days) {
    return Result.fail(new ScopeExceeds({ detail: `The device asked for a key of ${asking.expires_in_days} days.` }))
  }
  return Result.succeed({
    ...(scopes === undefined ? {} : { scopes }),
    ...(days === undefined ? {} : { expires_in_days: days }),
  })
}

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))
const unknown = new NotFound({ detail: "The user code does not exist." })

/** Returns where the key is sealed. The name contains the hash of the device code, so only its holder can open it. */
export const keyPlace = (org: string, id: string, keyId: string, deviceHash: Uint8Array): Place => ({
  table: "device_authorization",
  column: "sealed_key",
  row: id,
  org,
  names: [keyId, Buffer.from(deviceHash).toString("hex")],
})
const newUserCode = () => Array.from({ length: 8 }, () => userCodeAlphabet[randomInt(userCodeAlphabet.length)]).join("")

const statusAt = (row: ViewRow, at: Date): DeviceStatus =>
  row.expires_at <= at && (row.status === "pending" || row.status === "approved") ? "expired" : row.status

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const feed = yield* ChangeFeed
  const sealing = yield* Sealing

  const find = (userCode: string) => {
    const letters = userCodeOf(userCode)
    return letters === undefined
      ? Effect.fail(unknown)
      : Effect.flatMap(
          sql<ViewRow>`
            select user_code, name, client, scopes, expires_in_days, status, created_at, expires_at from device_authorization where user_code = ${letters}`,
          ([row]) => (row === undefined ? Effect.fail(unknown) : Effect.succeed(row)),
        )
  }

  /** Returns why a decision changed nothing. */
  const settled = Effect.fnUntraced(function* (userCode: string) {
    const row = yield* find(userCode)
    return yield* new DeviceAuthorizationSettled({
      detail: `The device login is ${statusAt(row, yield* now)}.`,
    })
  })

  return {
    start: Effect.fn("Devices.start")(
      function* (request: Omit<DeviceStart, "scopes">, scopes: Scopes | undefined) {
        const id = yield* makeUuidV7
        const at = yield* now
        const expiresAt = new Date(at.getTime() + deviceMillis)
        const deviceCode = randomBytes(32).toString("base64url")
        const userCode = newUserCode()
        yield* sql`
          insert into device_authorization (id, device_hash, user_code, name, client, scopes, expires_in_days,
                                            interval_seconds, created_at, expires_at)
          values (${id}, ${sha256(deviceCode)}, ${userCode}, ${request.name}, ${request.client ?? null},
                  ${scopes?.text ?? null}, ${request.expires_in_days ?? null}, ${pollSeconds}, ${at}, ${expiresAt})`
        return { deviceCode, userCode: displayUserCode(userCode), expiresAt, intervalSeconds: pollSeconds }
      },
      // Draws another user code if this one is in use.
      Effect.retry({ times: 3, while: (error) => error.reason._tag === "UniqueViolation" }),
      orUnavailable,
    ),

    view: Effect.fn("Devices.view")(function* (userCode: string) {
      const row = yield* find(userCode)
      const view: DeviceView = {
        ...row,
        user_code: displayUserCode(row.user_code),
        scopes: scopesOf(row.scopes ?? everything).names,
        status: statusAt(row, yield* now),
      }
      return view
    }, orUnavailable),

    /**
     * Creates the Admin Key, sealed until the terminal collects it. `judge` returns which of the requested rights the
     * approver can give; the approver may remove some.
     */
    approve: Effect.fn("Devices.approve")(
      function* (org: string, userCode: string, given: DeviceApproval, judge: Judge, by: Initiator, note?: AuditNote) {
        const at = yield* now
        const letters = userCodeOf(userCode)
        if (letters === undefined) return yield* unknown
        const [device] = yield* sql<Asking>`
          select d.id, d.name, d.device_hash, d.scopes, d.expires_in_days, o.data_key from device_authorization d join org o on o.id = ${org}
          where d.user_code = ${letters} and d.status = 'pending' and d.expires_at > ${at}
          for update of d`
        if (device === undefined) return yield* settled(userCode)
        yield* roomForKey(sql, org, by, at)
        const rights = yield* Effect.fromResult(Result.flatMap(within(device, given), judge))
        const key = mint("admin_key")
        const keyId = yield* makeUuidV7
        const dataKey = yield* Effect.orDie(sealing.openDataKey(org, device.data_key))
        const sealed = yield* sealing.seal(
          dataKey,
          keyPlace(org, device.id, keyId, device.device_hash),
          new TextEncoder().encode(key.token),
        )
        yield* sql`
          with approved as (
            update device_authorization
            set status = 'approved', org_id = ${org}, key_id = ${keyId}, sealed_key = ${sealed},
                approver_kind = ${by.kind}, approver_id = ${by.credentialId}
            where id = ${device.id} returning id
          ),
          ${mintKey({ sql, org, at, by }, sql`approved`, { id: keyId, name: device.name, minted: key, identity: null, rights })}
          ${auditWriteWith(sql, note, "minted")}
          select 1`
      },
      (write, org) => Effect.tap(sql.withTransaction(write), () => Effect.sync(() => feed.announce({ org }))),
      orUnavailable,
    ),

    deny: Effect.fn("Devices.deny")(function* (userCode: string) {
      const at = yield* now
      const letters = userCodeOf(userCode)
      if (letters === undefined) return yield* unknown
      const denied = yield* sql`
        update device_authorization set status = 'denied'
        where user_code = ${letters} and status = 'pending' and expires_at > ${at} returning 1`
      if (denied.length === 0) return yield* settled(userCode)
    }, orUnavailable),

    /** Returns the key, or the reason why it does not exist yet (RFC 8628 section 3.5). Terminals poll this. */
    poll: Effect.fn("Devices.poll")(
      function* (deviceCode: string) {
        const at = yield* now
        const [row] = yield* sql<PollRow>`
        with found as (
          select *, coalesce(polled_at > ${at}::timestamptz - make_interval(secs => interval_seconds), false) as too_fast
          from device_authorization where device_hash = ${sha256(deviceCode)} for update
        ),
        collected as (
          update device_authorization d set status = 'collected', sealed_key = null
          from found where d.id = found.id and found.status = 'approved' and found.expires_at > ${at} returning d.id
        ),
        polled as (
          update device_authorization d
          set polled_at = ${at}, interval_seconds = d.interval_seconds + case when found.too_fast then 5 else 0 end
          from found where d.id = found.id and found.status = 'pending' and found.expires_at > ${at} returning d.id
        )
        select found.*, exists (select from collected) as collected from found`
        if (row === undefined) return yield* new DeviceCodeInvalid({ detail: "The device code is unknown." })
        const status = statusAt(row, at)
        if (status === "expired") return yield* new DeviceCodeExpired({ detail: "The device code has expired." })
        if (status === "denied") return yield* new DeviceCodeDenied({ detail: "The account holder denied the login." })
        if (status === "pending") {
          const wait = row.interval_seconds + (row.too_fast ? 5 : 0)
          return yield* row.too_fast
            ? new SlowDown({ detail: `Polls must be ${wait} seconds apart.`, retry_after_seconds: wait })
            : new AuthorizationPending({ detail: "The login is not confirmed yet.", retry_after_seconds: wait })
        }
        if (!row.collected || row.sealed_key === null || row.org_id === null) {
          return yield* new DeviceCodeUsed({ detail: "The key was collected already." })
        }
        // A separate statement: the one above may have waited for the approval, and does not see its commit.
        const [minted] = yield* sql<CollectedRow>`
          select ${keyColumns(sql)}, data_key, creator_kind, creator_end, creator_scopes from (
            select k.*, o.data_key, ${creatorColumns(sql)}
            from device_authorization d join api_key k on k.id = d.key_id join org o on o.id = k.org_id
            ${joinCreator(sql, { kind: sql`d.approver_kind`, id: sql`d.approver_id`, identity: sql`k.identity_id` }, sql`${at}::timestamptz`)}
            where d.id = ${row.id} and k.revoked_at is null
          ) minted`
        if (minted === undefined) return yield* new DeviceCodeUsed({ detail: "The key is no longer available." })
        if (endOf(minted) !== null) {
          yield* sql`
            with denied as (update device_authorization set status = 'denied' where id = ${row.id}),
            ${revokeKeys({ sql, org: row.org_id, at, by: system }, sql`id = ${minted.id}`)}
            select 1`
          return yield* new DeviceCodeDenied({ detail: "The credential that approved the login was revoked." })
        }
        const dataKey = yield* Effect.orDie(sealing.openDataKey(row.org_id, minted.data_key))
        const token = yield* Effect.orDie(
          sealing.open(dataKey, keyPlace(row.org_id, row.id, minted.id, row.device_hash), row.sealed_key),
        )
        return { key: new TextDecoder().decode(token), api_key: keyView(minted) }
      },
      // The transaction only commits if the key could be opened. What a rejection recorded is committed too.
      (poll) => Effect.flatMap(sql.withTransaction(Effect.result(poll)), Effect.fromResult),
      orUnavailable,
    ),
  }
})

export class Devices extends Context.Service<Devices, Effect.Success<typeof make>>()("@svc/cluster/account/Devices") {
  static readonly layer = Layer.effect(Devices, make)
}
