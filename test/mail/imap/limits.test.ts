/** Limits of commands, of concurrent sessions and of temporary files, at their boundaries. */
import { Framing } from "@svc/mail-gateway/mail/imap/protocol/Framing"
import * as SessionLimits from "@svc/mail-gateway/mail/imap/server/SessionLimits"
import * as SpoolFiles from "@svc/mail-gateway/mail/imap/server/SpoolFiles"
import { Effect, Exit } from "effect"
import { fstatSync, readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { expect, it } from "vitest"

/** Returns the kinds of frames that a client's bytes form, which arrive in chunks of this size. */
const framesOf = (text: string, size = text.length) => {
  const limits = { commandBytes: 100, literals: 10, literalBytes: () => 10, heldBytes: 10, passedBytes: 300 }
  const framing = new Framing(() => ({ ...limits, passedLiteralBytes: 1_000 }))
  const found: Array<string> = []
  for (let from = 0; from < text.length; from += size) {
    const chunk = Buffer.from(text.slice(from, from + size))
    for (let at = 0; at < chunk.length;) {
      const next = framing.next(chunk, at)
      at = next.at
      if (next.frame !== undefined) found.push(next.frame._tag)
    }
  }
  return found
}

it("The lines of a command are limited together, and those of the next command anew", () => {
  const command = (literals: number) => `${`${"x".repeat(26)}{1+}\r\ny`.repeat(literals)}z\r\n`
  expect(framesOf(command(3).repeat(3))).toEqual(["Command", "Command", "Command"])
  expect(framesOf(`${command(4)}a NOOP\r\n`)).toEqual(["Refused", "Command"])
})

it("An oversized command ends behind its literals, wherever its bytes are divided, or not at all", () => {
  const oversized = `${"x".repeat(120)}{5+}\r\nabcde`
  for (const size of [1, 7, 1_000]) expect(framesOf(`${oversized}\r\na NOOP\r\n`, size)).toEqual(["Refused", "Command"])
  expect(framesOf(oversized.repeat(3))).toContain("Endless")
})

it("Sessions are limited per client network, per Mailbox and in all, and an ended session makes room", () => {
  const limits = SessionLimits.make({ inAll: 3, perClient: 2, perMailbox: 1 })
  expect([1, 2, 3].map((n) => limits.connect(`2001:db8::${n}`))).toEqual([true, true, false])
  expect(["192.0.2.1", "192.0.2.2"].map((address) => limits.connect(address))).toEqual([true, false])
  expect([limits.open("ada"), limits.open("ada"), limits.open("grace")]).toEqual([true, false, true])
  limits.close("ada")
  expect(limits.open("ada")).toBe(true)
  limits.disconnect("2001:db8::1")
  expect(limits.connect("192.0.2.2")).toBe(true)
  for (const address of ["2001:db8::2", "192.0.2.1", "192.0.2.2"]) limits.disconnect(address)
  for (const mailbox of ["ada", "grace"]) limits.close(mailbox)
  // Clients and Mailboxes without sessions take no memory.
  expect(limits.isEmpty()).toBe(true)
})

it("Temporary files together have a maximum size, which a file gives back once", async () => {
  const spools = SpoolFiles.make(100)
  const run = Effect.runPromise
  const first = await run(spools.open(60))
  expect(spools.room()).toBe(40)
  const refused = await run(Effect.flip(spools.open(41)))
  expect([refused._tag, refused.retry_after_seconds, spools.room()]).toEqual(["unavailable", 30, 40])
  const second = await run(spools.open(40))
  expect(spools.room()).toBe(0)
  await run(Effect.andThen(first.close, first.close))
  expect(spools.room()).toBe(60)
  await run(second.close)
  expect(spools.room()).toBe(100)
  // A file that cannot be created takes no space.
  const { TMPDIR } = process.env
  process.env["TMPDIR"] = "/dev/null"
  expect(await run(Effect.flip(spools.open(60)))).toMatchObject({ _tag: "unavailable" })
  if (TMPDIR === undefined) delete process.env["TMPDIR"]
  else process.env["TMPDIR"] = TMPDIR
  expect(spools.room()).toBe(100)
})

/** Returns the permissions of the open files of this size that have no name. */
const modesOf = (size: number) =>
  Array.from({ length: 1_024 }, (_, descriptor) => descriptor).flatMap((descriptor) => {
    try {
      const file = fstatSync(descriptor)
      return file.nlink === 0 && file.size === size ? [file.mode & 0o777] : []
    } catch {
      return []
    }
  })

it("A temporary file is its owner's alone and has no name, and contains the pieces in their order however often it is read", async () => {
  const spool = await Effect.runPromise(SpoolFiles.make(1_000_000).open(600_000))
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith("svc-append-"))).toEqual([])
  const pieces = [Buffer.from("a"), Buffer.alloc(500_000, "b"), Buffer.alloc(0), Buffer.from("c")]
  for (const piece of pieces) await Effect.runPromise(spool.write(piece))
  for (const _ of [1, 2]) expect(Buffer.concat(pieces).equals(await Effect.runPromise(spool.read))).toBe(true)
  expect(modesOf(Buffer.concat(pieces).length)).toEqual([0o600])
  await Effect.runPromise(spool.close)
  // After it was closed neither works, and the failure is one of the service.
  for (const work of [spool.read, spool.write(Buffer.from("d"))]) {
    const exit = await Effect.runPromise(Effect.exit(work as Effect.Effect<unknown, { readonly _tag: string }>))
    expect(Exit.isFailure(exit) && exit.cause.reasons[0]).toMatchObject({ error: { _tag: "unavailable" } })
  }
})
