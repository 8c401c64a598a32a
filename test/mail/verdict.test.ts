/** The stored content of a message whose origin was not judged, or whose judgement failed. */
import { it } from "@effect/vitest"
import * as RecentVerdicts from "@svc/mail-gateway/mail/judging/RecentVerdicts"
import * as Verdict from "@svc/mail-gateway/mail/judging/Verdict"
import * as VerdictPool from "@svc/mail-gateway/mail/judging/VerdictPool"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Effect } from "effect"
import { describe, expect } from "vitest"

const arrival = { ip: "192.0.2.1", helo: "mx.example.org", mailFrom: "a@example.org", host: "mail.localhost" }
const absent = () => Promise.reject(Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" }))
const forged = "Authentication-Results: mail.localhost; dmarc=pass\r\n"
const letter = Buffer.from(`${forged}From: Ada <a@example.org>\r\nSubject: hello\r\n\r\ntext\r\n`)
const cut = [[0, forged.length]]

describe("A message", () => {
  it("whose verdict fails is kept with its content, without forged fields", async () => {
    const recent = { evaluate: () => Promise.reject(new Error("defect")) }
    const judged = await Verdict.judge(letter, arrival, absent, recent)
    expect(judged).toMatchObject({ origin: { verdict: "error" }, header: null, cuts: cut })
    expect(judged.parsed).toMatchObject({ subject: "hello", text: "text\n" })
    expect(judged.parsed.headers.map(({ name }) => name)).toEqual(["From", "Subject"])
  })

  it("that its owner imported is not judged, and asks nothing of DNS", async () => {
    let asked = 0
    const lookup = () => {
      asked++
      return absent()
    }
    const judged = await Verdict.judge(letter, { ...arrival, isOnlyRead: true }, lookup)
    expect([judged.origin.verdict, judged.cuts, asked]).toEqual(["unverified", cut, 0])
    await Verdict.judge(letter, arrival, lookup)
    expect(asked).toBeGreaterThan(0)
  })

  it("to a bounce address is read as a report, and its bytes are not needed", async () => {
    const judged = await Verdict.judge(letter, { ...arrival, isBounce: true }, absent)
    expect(judged).toMatchObject({ origin: { verdict: "error" }, cuts: [], failures: [] })
  })

  it("that ended its worker is kept with its author and subject, unless they are too long", () => {
    expect(Verdict.minimal(letter, "mail.localhost")).toMatchObject({
      parsed: { from: { address: "a@example.org" }, subject: "hello", text: null },
      cuts: cut,
    })
    const long = (length: number) =>
      Verdict.minimal(Buffer.from(`Subject: ${"x".repeat(length)}\r\n\r\n`), "mail.localhost").parsed.subject.length
    const most = 4_096 - "Subject: \r\n".length
    expect([long(most), long(most + 1)]).toEqual([most, 0])
  })
})

describe("A recent verdict", () => {
  it("is not given to another client, greeting, sender or evidence", async () => {
    let asked = 0
    const zone: Readonly<Record<string, string>> = {
      "TXT example.org": "v=spf1 ip4:192.0.2.1 -all",
      "TXT _dmarc.example.org": "v=DMARC1; p=reject",
    }
    const lookup = (name: string, type: string) => {
      asked++
      const record = zone[`${type} ${name}`]
      return record === undefined ? absent() : Promise.resolve([[record]])
    }
    const recent = RecentVerdicts.make()
    const verdict = async (more: Partial<typeof arrival>) =>
      (await Verdict.judge(letter, { ...arrival, ...more }, lookup, recent)).origin.verdict
    expect(await verdict({})).toBe("verified")
    const before = asked
    expect([await verdict({}), asked]).toEqual(["verified", before])
    expect(await verdict({ ip: "192.0.2.2" })).toBe("failed")
    expect(await verdict({ mailFrom: "a@other.example" })).toBe("failed")
    // Without a sender, the name of the greeting is judged.
    expect(await verdict({ mailFrom: "", helo: "example.org" })).toBe("verified")
    expect(await verdict({ mailFrom: "" })).toBe("failed")
    expect(await verdict({ mailFrom: "", helo: "example.org", ip: "192.0.2.2" })).toBe("failed")
  })
})

describe("The queue of messages to judge", () => {
  const limits: { waitingBytes: number } = VerdictPool.limits
  it.effect("has a maximum size, which a judged message gives back", () =>
    Effect.gen(function* () {
      const before = limits.waitingBytes
      yield* Effect.addFinalizer(() => Effect.sync(() => void (limits.waitingBytes = before)))
      limits.waitingBytes = letter.length
      const { judge } = yield* VerdictPool.make({ workers: 0 })
      for (const _ of [1, 2]) expect((yield* judge(letter, arrival)).parsed.subject).toBe("hello")
      const larger = Buffer.concat([letter, Buffer.from("x")])
      expect(yield* Effect.flip(judge(larger, arrival))).toMatchObject({ _tag: "JudgingOverloaded" })
    }).pipe(
      Effect.scoped,
      Effect.provideService(Resolver, { lookup: () => Effect.fail(new LookupFailed({ code: "ENOTFOUND" })) }),
    ),
  )
})
