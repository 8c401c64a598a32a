/**
 * The backup file: a tar (POSIX.1-1988, "ustar") compressed by zstd, so that `tar --zstd -tvf` lists it. A table is a
 * series of numbered members of a few megabytes, because its size is unknown at first; `manifest.json` is the last
 * member. Truncated or altered files are detected.
 */
import { createZstdCompress, createZstdDecompress, constants } from "node:zlib"
import { createReadStream } from "node:fs"
import { Readable, type Writable } from "node:stream"
import { pipeline } from "node:stream/promises"

export interface Member {
  readonly name: string
  readonly bytes: Buffer
}

/** The file is not a backup, or incomplete; `message` says which. */
export class Torn extends Error {}

const block = 512
/** Maximum size of a member; a larger one is not ours. */
const largestMember = 64 * 1024 * 1024

const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, "0")}\0`

const headerOf = ({ name, bytes }: Member): Buffer => {
  const header = Buffer.alloc(block)
  header.write(name, 0, 100)
  header.write(octal(0o600, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(bytes.length, 12), 124)
  header.write(octal(0, 12), 136)
  header.write(" ".repeat(8), 148)
  header.write("0", 156)
  header.write("ustar\0" + "00", 257)
  header.write(`${octal(sumOf(header), 7)} `, 148)
  return header
}

const sumOf = (header: Buffer): number => header.reduce((sum, byte) => sum + byte, 0)

const padding = (length: number) => Buffer.alloc((block - (length % block)) % block)

async function* packed(members: AsyncIterable<Member>): AsyncGenerator<Buffer> {
  for await (const member of members) {
    yield headerOf(member)
    yield member.bytes
    yield padding(member.bytes.length)
  }
  yield Buffer.alloc(2 * block)
}

const level = 3

/** Writes the members and closes `out`. */
export const write = (members: AsyncIterable<Member>, out: Writable): Promise<void> =>
  pipeline(
    Readable.from(packed(members)),
    createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
    out,
    { end: out !== process.stdout },
  )

/** Reads exact numbers of bytes from a stream of arbitrary chunks. */
const taking = (stream: AsyncIterable<Buffer>) => {
  const source = stream[Symbol.asyncIterator]()
  let waiting: Array<Buffer> = []
  let held = 0
  /** Reads the rest of the stream, because only its end shows that nothing is missing. */
  const drain = async (): Promise<void> => {
    while ((await source.next()).done !== true);
  }
  const take = async (count: number): Promise<Buffer> => {
    while (held < count) {
      const next = await source.next()
      if (next.done === true) throw new Torn("the file ends in the midst of it")
      waiting.push(next.value)
      held += next.value.length
    }
    const all = waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting)
    waiting = [all.subarray(count)]
    held -= count
    return all.subarray(0, count)
  }
  return { take, drain }
}

/** Returns the members of a file in order. Fails with {@link Torn} if the archive is incomplete. */
export async function* read(file: string): AsyncGenerator<Member> {
  const source = createReadStream(file, { highWaterMark: 1024 * 1024 })
  const decompressed = createZstdDecompress()
  source.on("error", (error) => decompressed.destroy(error))
  source.pipe(decompressed)
  const { take, drain } = taking(decompressed)
  try {
    while (true) {
      const header = await take(block)
      if (header.every((byte) => byte === 0)) return await drain()
      const said = Number.parseInt(header.toString("latin1", 148, 156), 8)
      const blank = Buffer.from(header).fill(" ", 148, 156)
      if (said !== sumOf(blank)) throw new Torn("it is no archive of ours")
      const size = Number.parseInt(header.toString("latin1", 124, 136), 8)
      if (!(size <= largestMember)) throw new Torn("a member is larger than any of ours")
      const name = header.toString("utf8", 0, 100).replace(/\0.*$/s, "")
      const bytes = Buffer.from(await take(size))
      await take(padding(size).length)
      yield { name, bytes }
    }
  } catch (error) {
    if (error instanceof Torn) throw error
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    if (/^E[A-Z]+$/.test(code)) throw error
    throw new Torn(`it cannot be decompressed (${error instanceof Error ? error.message : String(error)})`)
  } finally {
    source.destroy()
    decompressed.destroy()
  }
}
