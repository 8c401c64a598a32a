/** DKIM signatures of outgoing mail, verified by two implementations, and the life cycle of keys. */
import { expect, layer } from "@effect/vitest"
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import { rotate as resealByFirst } from "@svc/cluster/sealing/Rotation"
import { Unhurried } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { sign } from "@svc/mail-gateway/mail/sending/Signing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { authenticate } from "mailauth"
import { foundation } from "../../harness/Stores.ts"
import { verify } from "./Dkimpy.ts"
import { has } from "../../harness/Programs.ts"

const domain = "mail.example"
const keysLayer = DkimKeys.layer.pipe(Layer.provideMerge(foundation), Layer.orDie)

const head =
  "From: Ada <ada@mail.example>\r\nTo: grace@example.org\r\nSubject: hello\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n" +
  "Message-ID: <1@mail.example>\r\nAuto-Submitted: auto-generated\r\nAI-Disclosure: mode=ai-originated\r\n" +
  "Agent-Identity: did:web:mail.example:%40ada\r\n" +
  "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n"
const letter = (body: string) => Buffer.from(`${head}\r\n${body}`)

const bodies: Readonly<Record<string, string>> = {
  "a line": "hello\r\n",
  nothing: "",
  "no line break at its end": "hello",
  "empty lines at its end": "hello \t \r\n\r\n\r\n",
  "white space of all kinds": " a\t b  c \r\n \r\n\t\r\nd\r\n",
  "more than a slice of it": `.\r\n..a\r\n${"\r\n".repeat(2_000)}x${" ".repeat(900)}y\r\n${`${"z".repeat(76)} \r\n`.repeat(3_000)}`,
}

/** Returns mailauth's result of each signature, by selector. */
const judged = (message: Uint8Array, zone: Readonly<Record<string, string>>) =>
  Effect.promise(async () => {
    const { dkim } = await authenticate(Buffer.from(message), {
      ip: "192.0.2.1",
      helo: "mx.example",
      sender: "a@mail.example",
      disableBimi: true,
      disableArc: true,
      resolver: async (name: string) => {
        const record = zone[name]
        if (record === undefined) throw Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" })
        return [[record]]
      },
    })
    return dkim.results.map(({ status }) => status.result)
  })

const signed = Effect.fnUntraced(function* (content: Buffer) {
  const store = yield* DkimKeys
  yield* store.ensure(domain)
  const fields = yield* sign(content, yield* store.signing(domain), new Date())
  const listed = yield* store.list(domain)
  return {
    message: Buffer.concat([fields, content]),
    zone: Object.fromEntries(listed.map(({ name, record }) => [name, record])),
  }
})

layer(keysLayer)("Outgoing mail", (it) => {
  it.effect.each(Object.entries(bodies))("is signed with valid RSA and Ed25519 signatures: %s", ([, body]) =>
    Effect.gen(function* () {
      const { message, zone } = yield* signed(letter(body))
      expect(yield* judged(message, zone)).toEqual(["pass", "pass"])
      // The time of a signature is in seconds.
      expect(message.toString("latin1").match(/\bt=\d{10};/g)).toHaveLength(2)
      if (has("dkimpy")) expect(verify([message], zone, 2)).toEqual([[true, true]])
    }),
  )

  it.effect("fails verification after a field was added, changed or removed", () =>
    Effect.gen(function* () {
      const { message, zone } = yield* signed(letter("hello\r\n"))
      const text = message.toString("latin1")
      const forged = (
        "From Subject To Cc Reply-To Date Message-ID In-Reply-To References Auto-Submitted AI-Disclosure Agent-Identity MIME-Version " +
        "Content-Type Content-Transfer-Encoding Sender List-Unsubscribe"
      )
        .split(" ")
        .map((name) => `${name}: forged\r\n${text}`)
      const without = ["Auto-Submitted", "AI-Disclosure", "Agent-Identity"].map((name) =>
        text.replace(new RegExp(`^${name}: .*\r\n`, "m"), ""),
      )
      const forgeries = [...forged, ...without, text.replace("hello\r\n\r\n", "other\r\n\r\n")]
        .filter((forgery) => forgery !== text)
        .map((forgery) => Buffer.from(forgery, "latin1"))
      for (const forgery of forgeries)
        expect(yield* judged(forgery, zone), forgery.toString("latin1", 0, 40)).not.toContain("pass")
      if (has("dkimpy")) expect(verify(forgeries, zone, 2)).toEqual(forgeries.map(() => [false, false]))
    }),
  )
})

layer(keysLayer)("DKIM keys", (it) => {
  it.effect("are created once by concurrent processes, and sealed for their domain and selector", () =>
    Effect.gen(function* () {
      const store = yield* DkimKeys
      const sql = yield* Unhurried
      yield* Effect.all([store.ensure(domain), store.ensure(domain), store.ensure(domain)], { concurrency: 3 })
      const listed = yield* store.list(domain)
      expect(listed.map(({ selector, state }) => [selector, state])).toEqual([
        ["svc1-ed25519", "signing"],
        ["svc1-rsa", "signing"],
      ])
      // A sealed key cannot be opened under another selector.
      yield* store.ensure("other.example")
      yield* sql`
        update service_key set sealed = (select sealed from service_key where name = 'dkim/other.example/svc1-rsa')
        where name = 'dkim/other.example/svc1-ed25519'`
      expect((yield* Effect.exit(store.signing("other.example")))._tag).toBe("Failure")
      // A restart with the same master key re-seals nothing and can open everything.
      yield* resealByFirst
    }),
  )

  it.effect("overlap during rotation: new keys sign once they are published, and old keys stay listed", () =>
    Effect.gen(function* () {
      const store = yield* DkimKeys
      const states = Effect.map(store.list(domain), (listed) =>
        listed.filter(({ algorithm }) => algorithm === "rsa-sha256").map(({ state }) => state),
      )
      const signs = Effect.map(store.signing(domain), (keys) => keys.map(({ selector }) => selector).toSorted())
      yield* store.ensure(domain)
      yield* store.rotate(domain)
      yield* store.rotate(domain)
      expect(yield* states).toEqual(["signing", "waiting"])
      expect(yield* signs).toEqual(["svc1-ed25519", "svc1-rsa"])
      yield* store.begin(domain, 2)
      expect(yield* states).toEqual(["retired", "signing"])
      expect(yield* signs).toEqual(["svc2-ed25519", "svc2-rsa"])
      yield* TestClock.adjust(Timing.dkimOverlapMillis)
      expect(yield* states).toEqual(["past", "signing"])
      // The next rotation removes the old keys, and waits if the records are not yet published.
      yield* store.rotate(domain)
      expect(yield* states).toEqual(["signing", "waiting"])
      yield* TestClock.adjust(Timing.dkimWaitMillis)
      expect(yield* states).toEqual(["retired", "signing"])
      expect(yield* signs).toEqual(["svc3-ed25519", "svc3-rsa"])
    }),
  )
})
