import { type Letter, RelayUnavailable, SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { words } from "@svc/api/oauth/ConsentTexts"
import { send } from "@svc/cluster/oauth/GrantNotices"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { makeOrg, rows, storesLayer } from "../harness/Stores.ts"

layer(storesLayer)("Grant notice", (it) => {
  it.effect("is sent once, and those that the relay rejects are tried ever later and delay no other", () =>
    Effect.gen(function* () {
      const [rejected, org] = [yield* makeOrg, yield* makeOrg]
      const sql = yield* Writes
      const note = (to: string) =>
        Effect.flatMap(
          makeUuidV7,
          (id) => sql`
            insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
            values (${id}, ${to}, 'created', 'Claude', 'claude.ai', now())`,
        )
      for (let n = 0; n < 60; n++) yield* note(rejected)
      yield* note(org)
      const sent: Array<Letter> = []
      let attempts = 0
      let isUp = false
      const mailer = SystemMailer.of({
        send: (letter) => {
          const isTaken = isUp || letter.to === `${org}@example.org`
          if (isTaken) sent.push(letter)
          else attempts++
          return isTaken ? Effect.void : Effect.fail(new RelayUnavailable({ message: "550 no such user" }))
        },
        forward: () => Effect.void,
        keep: () => Effect.void,
      })
      const round = Effect.provideService(send, SystemMailer, mailer)
      yield* round
      yield* round
      expect(sent.map(({ to, text }) => [to, text.includes("claude.ai"), text.includes("/console/keys")])).toEqual([
        [`${org}@example.org`, true, true],
      ])
      expect(attempts).toBe(60)
      for (let n = 0; n < 12; n++) yield* Effect.andThen(TestClock.adjust("5 seconds"), round)
      expect(attempts).toBe(180)
      isUp = true
      yield* Effect.andThen(TestClock.adjust("1 minute"), round)
      expect(sent.length).toBe(61)
      expect(yield* rows((reads) => reads`select 1 from grant_notice where org_id in (${org}, ${rejected})`)).toEqual(
        [],
      )
    }),
  )

  it.effect("is in the language of the account, for each reason, and none goes to an account that is deleted", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const sent: Array<Letter> = []
      const mailer = SystemMailer.of({
        send: (letter) => Effect.sync(() => void sent.push(letter)),
        forward: () => Effect.void,
        keep: () => Effect.void,
      })
      const expected: Array<unknown> = []
      for (const [language, made, ended] of [
        ["en", /^An app was connected/, /^An app was disconnected/],
        ["de", /^Eine App wurde mit deinen Agenten verbunden$/, /^Eine App wurde vorsorglich getrennt$/],
        ["fr", /^Une application a été connectée/, /^Une application a été déconnectée/],
      ] as const) {
        const org = yield* makeOrg
        yield* sql`update org set language = ${language} where id = ${org}`
        for (const [kind, subject] of [
          ["created", made],
          ["refresh_reuse", ended],
        ] as const) {
          yield* sql`
            insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
            values (${yield* makeUuidV7}, ${org}, ${kind}, 'Claude', 'claude.ai', now())`
          expected.push({
            to: `${org}@example.org`,
            subject: expect.stringMatching(subject),
            text: expect.stringMatching(
              /Claude[^]*claude\.ai[^]*\n\n[^\n]+:\n\nhttp:\/\/localhost:8080\/console\/keys\n$/,
            ),
          })
        }
      }
      const leaving = yield* makeOrg
      yield* sql`update org set status = 'deleting' where id = ${leaving}`
      yield* sql`
        insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
        values (${yield* makeUuidV7}, ${leaving}, 'created', 'Claude', 'claude.ai', now())`
      yield* Effect.provideService(send, SystemMailer, mailer)
      expect(sent).toEqual(expected)
      const hints = sent.map(({ text }) => text.split("\n\n")[1])
      expect(new Set(hints).size).toBe(hints.length)
    }),
  )
})

describe("A text of the consent page", () => {
  /** Returns the functions of a table of texts, with the path of each. */
  const functionsOf = (
    table: object,
    path = "",
  ): ReadonlyArray<readonly [string, (...given: Array<unknown>) => string]> =>
    Object.entries(table).flatMap(([name, text]) =>
      typeof text === "function"
        ? [[`${path}${name}`, text]]
        : typeof text === "object"
          ? functionsOf(text, `${path}${name}.`)
          : [],
    )

  it.each(["en", "de", "fr"] as const)("contains what it is given, in %s", (language) => {
    const found = functionsOf(words[language])
    expect(found.length).toBeGreaterThan(6)
    for (const [name, text] of found) {
      const given = Array.from({ length: text.length }, (_, n) => (name === "days" ? 17 + n : `given-${n}`))
      for (const one of given) expect([name, text(...given)]).toEqual([name, expect.stringContaining(String(one))])
    }
    expect(words[language].days(365)).toMatch(/^1 [a-zA-Z]+$/)
  })
})
