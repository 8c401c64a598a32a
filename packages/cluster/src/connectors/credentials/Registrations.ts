/** OAuth client registrations at servers: one per Org and server, sealed with the Org's key. */
import { Clock, Effect, Redacted } from "effect"
import type { OwnIdentity } from "../../actor/Write.ts"
import type { Place, Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, type Sql } from "../../store/Database.ts"
import { bytesOf, textOf } from "../ConnectorState.ts"
import type { Registrations } from "../platforms/Platform.ts"

/** Limit per Org and platform, so that invented servers cannot fill the store. The oldest ones are removed. */
const atMost = 50

export const place = (org: string, platform: string, service: string): Place => ({
  table: "connector_registration",
  column: "sealed",
  row: `${platform}/${service}`,
  org,
  names: [],
})

/** An unreachable store is a defect here, because platforms cannot handle it. */
export const make = (
  sql: Sql,
  sealing: Sealing["Service"],
  { orgId, dataKey }: OwnIdentity,
  platform: string,
): Registrations => {
  const read: Registrations["read"] = (service) =>
    sql<{ sealed: Uint8Array }>`
      select sealed from connector_registration
      where org_id = ${orgId} and platform = ${platform} and service = ${service}`.pipe(
      Effect.flatMap(([row]) =>
        row === undefined
          ? Effect.succeed(undefined)
          : Effect.map(sealing.open(dataKey, place(orgId, platform, service), row.sealed), (bytes) =>
              Redacted.make(textOf(bytes)),
            ),
      ),
      orUnavailable,
      Effect.orDie,
    )
  return {
    read,
    store: (service, registration) =>
      Effect.gen(function* () {
        const sealed = yield* sealing.seal(
          dataKey,
          place(orgId, platform, service),
          bytesOf(Redacted.value(registration)),
        )
        const at = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          with gone as (
            delete from connector_registration where org_id = ${orgId}::uuid and platform = ${platform}::text
              and service in (
                select service from connector_registration where org_id = ${orgId}::uuid and platform = ${platform}::text
                order by created_at desc offset ${atMost - 1}::int
              )
          )
          insert into connector_registration (org_id, platform, service, sealed, created_at)
          values (${orgId}::uuid, ${platform}::text, ${service}::text, ${sealed}::bytea, ${at}::timestamptz)
          on conflict do nothing`
        return (yield* read(service)) ?? registration
      }).pipe(orUnavailable, Effect.orDie),
    forget: (service) =>
      sql`delete from connector_registration
          where org_id = ${orgId} and platform = ${platform} and service = ${service}`.pipe(
        Effect.asVoid,
        orUnavailable,
        Effect.orDie,
      ),
  }
}
