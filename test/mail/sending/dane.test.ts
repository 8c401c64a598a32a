/**
 * DANE for SMTP (RFC 7672): which certificates are required, according to DNS answers that a validating resolver
 * authenticates.
 */
import { createHash, X509Certificate } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { isUsable } from "@svc/mail-gateway/mail/sending/dane/Tlsa"
import * as Message from "@svc/mail-gateway/mail/sending/dane/Message"
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, it as test } from "vitest"
import { foundation } from "../../harness/Stores.ts"
import { chained } from "./Chain.ts"
import { a, mx, nameServer, type Names, tlsa } from "./NameServer.ts"
import { scripted, sink, directTransport, untrustedCertificate, transmission } from "./Sinks.ts"
import { has } from "../../harness/Programs.ts"

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest()
const keyOf = (pem: string) => new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" })
const raw = (pem: string) => new X509Certificate(pem).raw

const its = tlsa(3, 1, 1, sha256(keyOf(untrustedCertificate.cert)))
const anothers = tlsa(3, 1, 1, sha256(Buffer.from("another key")))

const zone: Names = {
  "MX example.org": { data: [mx(10, "mx.example.org")] },
  "A mx.example.org": { data: [a("127.0.0.1")] },
  "AAAA mx.example.org": {},
}
const named = (...records: ReadonlyArray<Uint8Array>): Names => ({
  ...zone,
  "TLSA _25._tcp.mx.example.org": { data: records },
})

/** Returns the state and the status of a message to example.org. */
const sent = Effect.fnUntraced(function* (names: Names, port: number) {
  const { port: validating } = yield* nameServer(names)
  const { send } = yield* Effect.provide(MailTransport, directTransport({ port, zone: {}, validating }))
  const [outcome] = yield* send(transmission())
  return [outcome!.state, "reply" in outcome! ? (outcome.reply?.status ?? null) : null] as const
}, Effect.scoped)

layer(foundation)("A server with TLSA records", (it) => {
  it.effect("gets mail over TLS with a matching certificate, whoever issued it", () =>
    Effect.gen(function* () {
      const complete = raw(untrustedCertificate.cert)
      for (const record of [
        its,
        tlsa(3, 0, 1, sha256(complete)),
        tlsa(3, 0, 2, createHash("sha512").update(complete).digest()),
        tlsa(3, 1, 0, keyOf(untrustedCertificate.cert)),
      ]) {
        const { port, taken } = yield* sink(untrustedCertificate)
        expect((yield* sent(named(anothers, record), port))[0]).toBe("sent")
        expect(taken.map(({ secure }) => secure)).toEqual([true])
      }
    }),
  )

  it.effect("gets no mail with another certificate or without TLS", () =>
    Effect.gen(function* () {
      const other = yield* sink()
      const stripped = yield* sink({ ...untrustedCertificate, disabledCommands: ["STARTTLS"] })
      for (const { port, taken } of [other, stripped]) {
        expect((yield* sent(named(its), port))[0]).toBe("deferred")
        expect(taken).toEqual([])
      }
      expect((yield* sent(named(its), other.port))[1]).toBe("4.7.5")
      const broken = yield* scripted((line, socket) => {
        if (line === "") return "220 hi"
        if (line.startsWith("EHLO")) return "250-x\r\n250 STARTTLS"
        if (line === "STARTTLS") {
          socket.write("220 go\r\n", () => socket.destroy())
          return null
        }
        return "250 ok"
      })
      expect((yield* sent(named(its), broken.port))[0]).toBe("deferred")
      expect(broken.heard.some((line) => line.startsWith("MAIL"))).toBe(false)
    }),
  )

  it.effect("gets no mail while the records cannot be queried", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink(untrustedCertificate)
      const names = { ...zone, "TLSA _25._tcp.mx.example.org": { code: 2 } }
      expect(yield* sent(names, port)).toEqual(["deferred", "4.7.5"])
      expect(taken).toEqual([])
    }),
  )

  it.effect("that are all unusable gets mail over TLS with any certificate, but not without TLS", () =>
    Effect.gen(function* () {
      const unusable = named(tlsa(1, 1, 1, sha256(Buffer.from("x"))), tlsa(3, 1, 1, Buffer.from("short")))
      const good = yield* sink(untrustedCertificate)
      expect((yield* sent(unusable, good.port))[0]).toBe("sent")
      expect(good.taken.map(({ secure }) => secure)).toEqual([true])
      const stripped = yield* sink({ disabledCommands: ["STARTTLS"] })
      expect((yield* sent(unusable, stripped.port))[0]).toBe("deferred")
    }),
  )

  it.effect("is found behind an alias, and by answers that need TCP", () =>
    Effect.gen(function* () {
      const names: Names = {
        ...zone,
        "A mx.example.org": { alias: "real.example.org", data: [a("127.0.0.1")] },
        "TLSA _25._tcp.real.example.org": { data: [its], isLong: true },
      }
      const good = yield* sink(untrustedCertificate)
      expect((yield* sent(names, good.port))[0]).toBe("sent")
      const other = yield* sink()
      expect((yield* sent(names, other.port))[0]).toBe("deferred")
    }),
  )

  it.effect("is treated like any other if the records are not authentic or missing", () =>
    Effect.gen(function* () {
      const where: ReadonlyArray<Names> = [
        zone,
        { ...named(anothers), "MX example.org": { ...zone["MX example.org"], isSecure: false } },
        { ...named(anothers), "A mx.example.org": { ...zone["A mx.example.org"], isSecure: false } },
        { ...zone, "TLSA _25._tcp.mx.example.org": { data: [anothers], isSecure: false } },
      ]
      for (const names of where) {
        const { port, taken } = yield* sink({ disabledCommands: ["STARTTLS"] })
        expect((yield* sent(names, port))[0]).toBe("sent")
        expect(taken).toHaveLength(1)
      }
    }),
  )

  it.effect.skipIf(!has("openssl"))(
    "that name an authority gets mail with a certificate issued by it for this server",
    () =>
      Effect.gen(function* () {
        const { authority, own, ...others } = chained()
        const record = tlsa(2, 0, 1, sha256(raw(authority)))
        const good = yield* sink({ cert: own.chain, key: own.key })
        expect((yield* sent(named(record), good.port))[0]).toBe("sent")
        for (const { chain, key } of [others.elsewhere, others.forged]) {
          const { port, taken } = yield* sink({ cert: chain, key })
          expect(yield* sent(named(record), port)).toEqual(["deferred", "4.7.5"])
          expect(taken).toEqual([])
        }
      }),
  )
})

test("a TLSA record is usable if it names a certificate or an authority by a known form of its bytes", () => {
  const usable = (usage: number, selector: number, matching: number, length: number) =>
    isUsable({ usage, selector, matching, data: Buffer.alloc(length) })
  const known: ReadonlyArray<Parameters<typeof usable>> = [
    [2, 0, 1, 32],
    [3, 1, 2, 64],
    [3, 0, 0, 1],
  ]
  expect(known.map((one) => usable(...one))).toEqual([true, true, true])
  const unknown: ReadonlyArray<Parameters<typeof usable>> = [
    [1, 1, 1, 32],
    [4, 1, 1, 32],
    [3, 2, 1, 32],
    [3, 1, 1, 33],
    [3, 1, 2, 32],
    [3, 1, 3, 32],
    [3, 1, 0, 0],
  ]
  expect(unknown.filter((one) => usable(...one))).toEqual([])
})

/** An answer with one question and these records of the same name. */
const dns = (
  { flags = 0x81a0, id = 1 }: { readonly flags?: number; readonly id?: number },
  ...records: ReadonlyArray<
    readonly [type: number, data: ReadonlyArray<number>, kind?: number, owner?: ReadonlyArray<number> | undefined]
  >
) => {
  const question = [1, 97, 0, 0, 1, 0, 1]
  const head = [id >> 8, id & 0xff, flags >> 8, flags & 0xff, 0, 1, 0, records.length, 0, 0, 0, 0]
  const answers = records.flatMap(([type, data, kind = 1, owner = [0xc0, 12]]) =>
    [...owner, type >> 8, type & 0xff, 0, kind, 0, 0, 0, 60, data.length >> 8, data.length & 0xff].concat(data),
  )
  return Buffer.from([...head, ...question, ...answers])
}

describe("The DNS parser", () => {
  test("reads records of the requested type, and the flags", () => {
    const a = [192, 0, 2, 1]
    const aaaa = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    const found = { id: 1, isTruncated: false, isSecure: true, code: 0, owner: "a", values: ["192.0.2.1"] }
    const none = { ...found, owner: undefined, values: [] }
    const read = (message: Buffer, type: Message.Type = "A") => Message.answer(message, type)
    expect(read(dns({}, [1, a]))).toEqual(found)
    expect(read(dns({}, [28, aaaa]), "AAAA")).toEqual({ ...found, values: ["2001:db8:0:0:0:0:0:1"] })
    expect(read(dns({}, [15, [0, 10, 0xc0, 12]]), "MX")).toEqual({
      ...found,
      values: [{ priority: 10, exchange: "a" }],
    })
    expect(read(dns({}, [52, [3, 1, 2, 7, 8]]), "TLSA")).toEqual({
      ...found,
      values: [{ usage: 3, selector: 1, matching: 2, data: Buffer.from([7, 8]) }],
    })
    // Another type or class is passed over.
    expect(read(dns({}, [28, aaaa], [1, a, 3], [1, a]))).toEqual(found)
    expect(read(dns({}, [28, aaaa]))).toEqual(none)
    expect(read(dns({ flags: 0x8180 }, [1, a]))).toEqual({ ...found, isSecure: false })
    expect(read(dns({ flags: 0x83a0 }))).toEqual({ ...none, isTruncated: true })
    expect(read(dns({ flags: 0x81a3 }))).toEqual({ ...none, code: 3 })
    expect(read(dns({ flags: 0x81a9 }))).toEqual({ ...none, code: 9 })
  })

  test("reads names of any length and case, compressed at any place", () => {
    const mx = (priority: number, name: ReadonlyArray<number>, owner?: ReadonlyArray<number>) =>
      [15, [0, priority, ...name], 1, owner] as const
    const read = (...records: Parameters<typeof dns> extends [unknown, ...infer R] ? R : never) => {
      const { owner, values } = Message.answer(dns({}, ...records), "MX")!
      return [owner, values.map((value) => (typeof value === "object" && "exchange" in value ? value.exchange : ""))]
    }
    // The first name is at offset 33, and points to the question.
    expect(read(mx(1, [1, 66, 0xc0, 12]), mx(2, [0xc0, 33], [0xc0, 33]))).toEqual(["a", ["b.a", "b.a"]])
    const labels = Array.from({ length: 10 }, () => [1, 99]).flat()
    expect(read(mx(1, [...labels, 0]))).toEqual(["a", ["c.c.c.c.c.c.c.c.c.c"]])
    // After 255 bytes of text the name is at offset 300.
    expect(read([16, Array.from({ length: 255 }, () => 0)], mx(1, [1, 100, 0]), mx(2, [0xc1, 44]))).toEqual([
      "a",
      ["d", "d"],
    ])
  })

  test("reads no question, nothing that is cut off, and no name with a dot in a label", () => {
    const whole = dns({}, [1, [192, 0, 2, 1]])
    expect(Message.answer(dns({ flags: 0x01a0 }, [1, [192, 0, 2, 1]]), "A")).toBeUndefined()
    for (let length = 0; length < whole.length; length++) {
      expect(Message.answer(whole.subarray(0, length), "A"), `${length}`).toBeUndefined()
    }
    for (const name of [
      [3, 97, 46, 98, 0],
      [64, 97, 0],
      [0x80, 97, 0],
    ]) {
      expect(Message.answer(dns({}, [15, [0, 10, ...name]]), "MX"), `${name}`).toBeUndefined()
    }
  })

  test("asks for names whose labels have 1 to 63 characters, 253 in all", () => {
    const label = "a".repeat(63)
    const long = [label, label, label, "a".repeat(61)].join(".")
    for (const name of ["a.example", "a.example.", label, long]) expect(Message.question(1, name, "A")).toBeDefined()
    for (const name of ["", ".", "a..b", `${label}a`, `${long}a`, "a b", "ä"]) {
      expect(Message.question(1, name, "A"), name).toBeUndefined()
    }
    // The recursion and AD flags, the name, TLSA, IN, and EDNS with 1,232 bytes.
    expect(Message.question(0x1234, "a.b.", "TLSA")?.toString("hex")).toBe(
      "1234012000010000000000010161016200" + "00340001" + "00002904d0000000000000",
    )
  })

  test("accepts any bytes without throwing", () => {
    const types = fc.constantFrom<Message.Type>("A", "AAAA", "MX", "TLSA")
    const head = Buffer.from([0, 1, 0x81, 0xa0, 0, 1, 0, 2, 0, 0, 0, 0])
    fc.assert(
      fc.property(types, fc.uint8Array({ maxLength: 80 }), (type, bytes) => {
        const read = Message.answer(Buffer.concat([head, bytes]), type)
        expect(read === undefined || read.isSecure).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    // A compression pointer to itself.
    expect(Message.answer(Buffer.concat([head, Buffer.from([0xc0, 12])]), "A")).toBeUndefined()
  })
})
