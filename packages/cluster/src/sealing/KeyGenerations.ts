/**
 * Signing keys of the service that rotate in generations: one key per algorithm, shared by all processes, and sealed under
 * a name that includes domain and selector.
 *
 * A rotation creates the next generation. It is published immediately and signs after a waiting time, or earlier if its
 * publication was seen. The previous generation stays published until what it signed has ended. One generation signs at a
 * time: the newest whose start time has passed.
 */
import { createPrivateKey, type KeyObject } from "node:crypto"
import { Clock, Effect } from "effect"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Sealing } from "./Sealing.ts"

interface Row<A> {
  readonly selector: string
  readonly generation: number
  readonly algorithm: A
  /** The public key in the form in which it is published. */
  readonly public_key: string
  readonly signs_from: Date
}

export interface GenerationKey<A> extends Row<A> {
  /**
   * `waiting` starts to sign at `at` or earlier; `retired` stays published until `at`; `past` is no longer needed.
   */
  readonly state: "waiting" | "signing" | "retired" | "past"
  readonly at: Date
}

interface Algorithm {
  readonly generate: () => Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }>
  readonly publish: (key: KeyObject, generation: number) => Promise<{ readonly selector: string; readonly key: string }>
}

interface Settings<A extends string> {
  readonly table: "dkim_key" | "issuer_key"
  /** The start of the names under which private keys are sealed. */
  readonly sealedAs: string
  readonly algorithms: Readonly<Record<A, Algorithm>>
  readonly waitMillis: number
  readonly overlapMillis: number
  readonly reloadMillis: number
}

/** Returns the state of each key at a point in time. */
const judged = <A>(rows: ReadonlyArray<Row<A>>, now: number, overlapMillis: number) => {
  const current = Math.max(
    ...rows.filter(({ signs_from }) => signs_from.getTime() <= now).map(({ generation }) => generation),
  )
  return rows.map((row): GenerationKey<A> => {
    const successor = rows.find(({ generation }) => generation === row.generation + 1)
    const until = new Date((successor?.signs_from.getTime() ?? now) + overlapMillis)
    const state =
      row.generation > current
        ? "waiting"
        : row.generation === current
          ? "signing"
          : until.getTime() > now
            ? "retired"
            : "past"
    return { ...row, state, at: state === "waiting" || state === "signing" ? row.signs_from : until }
  })
}

export const make = <A extends string>(settings: Settings<A>) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    const sealing = yield* Sealing
    const table = sql(settings.table)
    const algorithms = Object.keys(settings.algorithms) as Array<string> as Array<A>
    const sealedAs = (domain: string, selector: string) => `${settings.sealedAs}/${domain}/${selector}`

    const rowsOf = (domain: string) =>
      orUnavailable(sql<Row<A>>`
        select selector, generation, algorithm, public_key, signs_from from ${table} where domain = ${domain}
        order by generation, selector`)

    const list = Effect.fnUntraced(function* (domain: string) {
      return judged(yield* rowsOf(domain), yield* Clock.currentTimeMillis, settings.overlapMillis)
    })

    /** Creates a generation, unless another process already did. Keys are generated outside the transaction. */
    const add = Effect.fnUntraced(function* (domain: string, generation: number, signsFrom: Date) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const keys = yield* Effect.forEach(algorithms, (algorithm) =>
        Effect.gen(function* () {
          const { generate, publish } = settings.algorithms[algorithm]
          const { privateKey, publicKey } = yield* Effect.promise(generate)
          const { selector, key } = yield* Effect.promise(() => publish(publicKey, generation))
          const name = sealedAs(domain, selector)
          const sealed = yield* sealing.sealForService(name, privateKey.export({ type: "pkcs8", format: "der" }))
          return { selector, algorithm, public_key: key, name, sealed: Buffer.from(sealed).toString("hex") }
        }),
      )
      yield* orUnavailable(sql`
        with key as (
          select * from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb)
            as key (selector text, algorithm text, public_key text, name text, sealed text)
        ),
        added as (
          insert into ${table} (domain, selector, generation, algorithm, public_key, created_at, signs_from)
          select ${domain}::text, selector, ${generation}::int, algorithm, public_key, ${at}::timestamptz, ${signsFrom}::timestamptz
          from key on conflict do nothing returning selector
        )
        insert into service_key (name, sealed)
        select key.name, decode(key.sealed, 'hex') from key join added using (selector)`)
    })

    interface Opened {
      readonly selector: string
      readonly algorithm: A
      readonly key: KeyObject
    }
    const known = new Map<string, { readonly keys: ReadonlyArray<Opened>; readonly until: number }>()

    const open = Effect.fnUntraced(function* (domain: string) {
      const listed = yield* list(domain)
      return yield* Effect.forEach(
        listed.filter(({ state }) => state === "signing"),
        ({ selector, algorithm }) =>
          Effect.gen(function* () {
            const name = sealedAs(domain, selector)
            const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from service_key where name = ${name}`
            const bytes = yield* Effect.orDie(sealing.openForService(name, row!.sealed))
            const key = createPrivateKey({ key: Buffer.from(bytes), type: "pkcs8", format: "der" })
            return { selector, algorithm, key } satisfies Opened
          }),
      )
    }, orUnavailable)

    return {
      /** Returns all keys of the domain, oldest first. */
      list,

      /** Creates the first keys, which sign immediately. */
      ensure: Effect.fnUntraced(function* (domain: string) {
        const rows = yield* rowsOf(domain)
        if (rows.length === 0) yield* add(domain, 1, new Date(yield* Clock.currentTimeMillis))
      }),

      /**
       * Creates the next generation, deletes past ones and returns all keys. If a generation is already waiting, no other
       * is created, so a repeated rotation has no effect.
       */
      rotate: Effect.fnUntraced(function* (domain: string) {
        const listed = yield* list(domain)
        const past = listed.filter(({ state }) => state === "past").map(({ selector }) => selector)
        yield* orUnavailable(sql`
          with gone as (delete from ${table} where domain = ${domain} and selector = any(${past}::text[]))
          delete from service_key where name = any(${past.map((selector) => sealedAs(domain, selector))}::text[])`)
        const last = listed.at(-1)
        const now = yield* Clock.currentTimeMillis
        if (last?.state !== "waiting") {
          const from = last === undefined ? now : now + settings.waitMillis
          yield* add(domain, (last?.generation ?? 0) + 1, new Date(from))
        }
        return yield* list(domain)
      }),

      /** Starts to sign with a generation whose publication was seen. */
      begin: Effect.fnUntraced(function* (domain: string, generation: number) {
        const at = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          update ${table} set signs_from = ${at}
          where domain = ${domain} and generation = ${generation} and signs_from > ${at}`
        known.delete(domain)
      }, orUnavailable),

      /** Returns the keys that sign now, one per algorithm. */
      signing: Effect.fnUntraced(function* (domain: string) {
        const now = yield* Clock.currentTimeMillis
        const kept = known.get(domain)
        if (kept !== undefined && kept.until > now) return kept.keys
        const keys = yield* open(domain)
        if (keys.length > 0) known.set(domain, { keys, until: now + settings.reloadMillis })
        return keys
      }),
    }
  })
