/**
 * DKIM keys of a domain (RFC 6376): one RSA-2048 and one Ed25519 key, created at the first start, shared by all
 * processes, and sealed under a name that includes domain and selector.
 *
 * A rotation creates the next generation. It starts to sign when its records were seen in DNS, or after a waiting time.
 * The previous generation stays published until all mail signed with it has been delivered or has expired. One
 * generation signs at a time: the newest whose start time has passed.
 */
import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto"
import { promisify } from "node:util"
import { Clock, Context, Effect, Layer } from "effect"
import { Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Writes } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"

type Algorithm = "rsa-sha256" | "ed25519-sha256"

interface SigningKey {
  readonly domain: string
  readonly selector: string
  readonly algorithm: Algorithm
  readonly key: KeyObject
}

export interface ListedKey {
  readonly selector: string
  readonly generation: number
  readonly algorithm: Algorithm
  /** Name and content of the TXT record that publishes the key (section 3.6.1). */
  readonly name: string
  readonly record: string
  /**
   * `waiting` starts to sign at `at` or earlier; `retired` stays published until `at`; `past` can be removed from DNS.
   */
  readonly state: "waiting" | "signing" | "retired" | "past"
  readonly at: Date
}

interface Row {
  readonly selector: string
  readonly generation: number
  readonly algorithm: Algorithm
  readonly public_key: string
  readonly signs_from: Date
}

const sealedAs = (domain: string, selector: string) => `dkim/${domain}/${selector}`

const pairs = {
  "rsa-sha256": () => promisify(generateKeyPair)("rsa", { modulusLength: 2048 }),
  "ed25519-sha256": () => promisify(generateKeyPair)("ed25519"),
} as const

const algorithms = ["rsa-sha256", "ed25519-sha256"] as const
const kinds = { "rsa-sha256": "rsa", "ed25519-sha256": "ed25519" } as const

/** Returns the state of each key at a point in time. */
const judged = (domain: string, rows: ReadonlyArray<Row>, now: number): ReadonlyArray<ListedKey> => {
  const current = Math.max(
    ...rows.filter(({ signs_from }) => signs_from.getTime() <= now).map(({ generation }) => generation),
  )
  return rows.map((row) => {
    const successor = rows.find(({ generation }) => generation === row.generation + 1)
    const until = new Date((successor?.signs_from.getTime() ?? now) + Timing.dkimOverlapMillis)
    const state =
      row.generation > current
        ? "waiting"
        : row.generation === current
          ? "signing"
          : until.getTime() > now
            ? "retired"
            : "past"
    return {
      selector: row.selector,
      generation: row.generation,
      algorithm: row.algorithm,
      name: `${row.selector}._domainkey.${domain}`,
      record: `v=DKIM1; k=${kinds[row.algorithm]}; p=${row.public_key}`,
      state,
      at: state === "waiting" || state === "signing" ? row.signs_from : until,
    }
  })
}

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing

  const rowsOf = (domain: string) =>
    orUnavailable(sql<Row>`
    select selector, generation, algorithm, public_key, signs_from from dkim_key where domain = ${domain}
    order by generation, selector`)

  const list = Effect.fnUntraced(function* (domain: string) {
    return judged(domain, yield* rowsOf(domain), yield* Clock.currentTimeMillis)
  })

  /** Creates a generation, unless another process already did. Keys are generated outside the transaction. */
  const add = Effect.fnUntraced(function* (domain: string, generation: number, signsFrom: Date) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const keys = yield* Effect.forEach(algorithms, (algorithm) =>
      Effect.gen(function* () {
        const { privateKey, publicKey } = yield* Effect.promise(pairs[algorithm])
        const selector = `svc${generation}-${kinds[algorithm]}`
        const spki = publicKey.export({ type: "spki", format: "der" })
        // RFC 8463 section 4.2: only the 32 key bytes of an Ed25519 key are published.
        const published = algorithm === "rsa-sha256" ? spki : spki.subarray(-32)
        const sealed = yield* sealing.sealForService(
          sealedAs(domain, selector),
          privateKey.export({ type: "pkcs8", format: "der" }),
        )
        return {
          selector,
          algorithm,
          public_key: published.toString("base64"),
          name: sealedAs(domain, selector),
          sealed: Buffer.from(sealed).toString("hex"),
        }
      }),
    )
    yield* orUnavailable(sql`
      with key as (
        select * from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb)
          as key (selector text, algorithm text, public_key text, name text, sealed text)
      ),
      added as (
        insert into dkim_key (domain, selector, generation, algorithm, public_key, created_at, signs_from)
        select ${domain}::text, selector, ${generation}::int, algorithm, public_key, ${at}::timestamptz, ${signsFrom}::timestamptz
        from key on conflict do nothing returning selector
      )
      insert into service_key (name, sealed)
      select key.name, decode(key.sealed, 'hex') from key join added using (selector)`)
  })

  const known = new Map<string, { readonly keys: ReadonlyArray<SigningKey>; readonly until: number }>()

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
          return { domain, selector, algorithm, key }
        }),
    )
  }, orUnavailable)

  return {
    /** Returns all keys of the domain, oldest first. */
    list,

    /** Creates the first keys, which sign immediately. */
    ensure: Effect.fn("DkimKeys.ensure")(function* (domain: string) {
      const rows = yield* rowsOf(domain)
      if (rows.length === 0) yield* add(domain, 1, new Date(yield* Clock.currentTimeMillis))
    }),

    /**
     * Creates the next generation, deletes past ones and returns all keys. If a generation is already waiting, no other
     * is created, so a repeated rotation has no effect.
     */
    rotate: Effect.fn("DkimKeys.rotate")(function* (domain: string) {
      const listed = yield* list(domain)
      const past = listed.filter(({ state }) => state === "past").map(({ selector }) => selector)
      yield* orUnavailable(sql`
        with gone as (delete from dkim_key where domain = ${domain} and selector = any(${past}::text[]))
        delete from service_key where name = any(${past.map((selector) => sealedAs(domain, selector))}::text[])`)
      const last = listed.at(-1)
      const now = yield* Clock.currentTimeMillis
      if (last?.state !== "waiting") {
        const from = last === undefined ? now : now + Timing.dkimWaitMillis
        yield* add(domain, (last?.generation ?? 0) + 1, new Date(from))
      }
      return yield* list(domain)
    }),

    /** Starts to sign with a generation that was seen in DNS. */
    begin: Effect.fn("DkimKeys.begin")(function* (domain: string, generation: number) {
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        update dkim_key set signs_from = ${at}
        where domain = ${domain} and generation = ${generation} and signs_from > ${at}`
      known.delete(domain)
    }, orUnavailable),

    /** Returns the keys that sign now, one per algorithm. */
    signing: Effect.fnUntraced(function* (domain: string) {
      const now = yield* Clock.currentTimeMillis
      const kept = known.get(domain)
      if (kept !== undefined && kept.until > now) return kept.keys
      const keys = yield* open(domain)
      if (keys.length > 0) known.set(domain, { keys, until: now + Timing.dkimReloadMillis })
      return keys
    }),
  }
})

export class DkimKeys extends Context.Service<DkimKeys, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/dkim/DkimKeys",
) {
  static readonly layer = Layer.effect(DkimKeys, make)
}
