/**
 * Selects the PostgreSQL of the service: the operator's, from `DATABASE_URL`, or the embedded one in the data
 * directory.
 */
import { check, type Finding } from "@svc/cluster/health/Health"
import type { ConnectionSettings } from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { collect } from "@svc/cluster/observe/Collectors"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { Effect, Layer, Option } from "effect"
import type { Settings } from "./Settings.ts"

export interface Store {
  readonly connection: ConnectionSettings
  /** Describes the location of the data to people. */
  readonly place: string
  readonly embeddedHome: string | undefined
}

export const open = (settings: Settings) =>
  Option.match(settings.databaseUrl, {
    onSome: (url) =>
      Effect.succeed<Store>({ connection: { url }, place: "the database of DATABASE_URL", embeddedHome: undefined }),
    onNone: () =>
      Effect.map(EmbeddedPostgres.open({ directory: settings.dataDirectory }), ({ connection, home }): Store => ({
        connection,
        place: home,
        embeddedHome: home,
      })),
  })

/** Free space below which operators are warned, because the store is likely to stop accepting writes. */
const lowBytes = 2 * 1024 ** 3
const criticalBytes = 200 * 1024 ** 2

const freeSpace = Metrics.gauge("svc_store_free_bytes", "Free bytes of the embedded database's disk", [])

/** Health of the embedded store's disk. */
export const diskHealth = ({ embeddedHome: home }: Store) =>
  home === undefined
    ? Layer.empty
    : Layer.merge(
        check(
          "disk",
          false,
          Effect.map(EmbeddedPostgres.freeBytes(home), (free): Finding => ({
            status: free < criticalBytes ? "fail" : free < lowBytes ? "warn" : "pass",
            detail: `${(free / 1024 ** 3).toFixed(1)} GiB free`,
          })),
        ),
        collect(Effect.map(EmbeddedPostgres.freeBytes(home), (free) => freeSpace.set([], free))),
      )
