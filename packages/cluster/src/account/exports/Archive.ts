/** The zip of an export, created while it is downloaded; pieces are opened one by one. */
import { once } from "node:events"
import { createDeflateRaw } from "node:zlib"
import { Effect, Stream } from "effect"
import { Zip, ZipPassThrough } from "fflate"
import { type DataKey, Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../../store/Database.ts"
import { type ExportRef, place } from "./ExportPieces.ts"

/** A member that is added during the download and not stored. */
interface Extra {
  readonly member: string
  readonly bytes: Uint8Array
}

/** A member that is compressed outside the event loop, because compressing a piece would block it for too long. */
class Member extends ZipPassThrough {
  private readonly raw = createDeflateRaw()
  constructor(name: string) {
    super(name)
    this.compression = 8
    this.raw.on("data", (bytes: Uint8Array<ArrayBuffer>) => this.ondata(null, bytes, false))
  }

  /** Does nothing: the caller sets checksum and size, and the bytes follow later ({@link deflate}). */
  protected override process(): void {}

  async deflate(bytes: Uint8Array, last: boolean): Promise<void> {
    this.push(bytes, last)
    const { raw } = this
    await new Promise<void>((resolve, reject) => {
      raw.once("error", reject)
      raw.write(bytes, (error) => {
        // Removes the listener, because a member may have many pieces.
        raw.off("error", reject)
        if (error) reject(error)
        else resolve()
      })
    })
    if (!last) return
    const ended = once(this.raw, "end")
    this.raw.end()
    await ended
    this.ondata(null, new Uint8Array(0), true)
  }
}

/** Creates a zip that returns the bytes written so far. */
const makeZip = () => {
  let out: Array<Uint8Array> = []
  let entry: Member | undefined
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
    add: (member: string, first: boolean, last: boolean, bytes: Uint8Array) =>
      Effect.promise(async () => {
        if (first || entry === undefined) {
          entry = new Member(member)
          zip.add(entry)
        }
        await entry.deflate(bytes, last)
        return drain()
      }),
    end: () => {
      zip.end()
      return drain()
    },
  }
}

/** Returns the bytes of the zip; `extra` is its last member. */
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
        return yield* zip.add(member, number === 0, last, bytes)
      }),
    ),
  )
  const end = Stream.fromEffect(
    Effect.map(
      extra === undefined ? Effect.succeed([]) : zip.add(extra.member, true, true, extra.bytes),
      (chunks: ReadonlyArray<Uint8Array>) => [...chunks, ...zip.end()],
    ),
  )
  return Stream.concat(body, end).pipe(
    Stream.flatMap((chunks) => Stream.fromIterable(chunks)),
    Stream.orDie,
  )
})
