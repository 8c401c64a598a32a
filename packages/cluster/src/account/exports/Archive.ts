/** The zip of an export, made as it is downloaded: pieces are opened one by one. */
import { Effect, Stream } from "effect"
import { Zip, ZipDeflate } from "fflate"
import { type DataKey, Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../../store/Database.ts"
import { type ExportRef, place } from "./Pieces.ts"

/** A member that is not stored. */
export interface Extra {
  readonly member: string
  readonly bytes: Uint8Array
}

/** Feeds a zip and hands out what it has made so far. */
const makeZip = () => {
  let out: Array<Uint8Array> = []
  let entry: ZipDeflate | undefined
  const zip = new Zip((error, chunk) => {
    if (error !== null) throw error
    out.push(chunk)
  })
  const drain = () => {
    const made = out
    out = []
    return made
  }
  return {
    add: (member: string, first: boolean, last: boolean, bytes: Uint8Array) => {
      if (first || entry === undefined) {
        entry = new ZipDeflate(member)
        zip.add(entry)
      }
      entry.push(bytes, last)
      return drain()
    },
    end: () => {
      zip.end()
      return drain()
    },
  }
}

/** The bytes of the zip; `extra` goes in last. */
export const stream = Effect.fnUntraced(function* (
  org: string,
  ref: ExportRef,
  dataKey: DataKey,
  extra: Extra | undefined,
) {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const pieces = yield* orUnavailable(sql<{ member: string; number: number; last: boolean }>`
    select member, number, number = max(number) over (partition by member) as last
    from export_piece where export_id = ${ref.id} order by member, number`)
  const zip = makeZip()
  const body = Stream.fromIterable(pieces).pipe(
    Stream.mapEffect(
      Effect.fnUntraced(function* ({ member, number, last }) {
        const [piece] = yield* sql<{ sealed: Uint8Array }>`
          select sealed from export_piece where export_id = ${ref.id} and member = ${member} and number = ${number}`
        if (piece === undefined) return yield* Effect.die(new Error("the export went while it was read"))
        const bytes = yield* sealing.open(dataKey, place(org, ref, member, number), piece.sealed)
        return zip.add(member, number === 0, last, bytes)
      }),
    ),
  )
  const end = Stream.sync(() => [
    ...(extra === undefined ? [] : zip.add(extra.member, true, true, extra.bytes)),
    ...zip.end(),
  ])
  return Stream.concat(body, end).pipe(
    Stream.flatMap((chunks) => Stream.fromIterable(chunks)),
    Stream.orDie,
  )
})
