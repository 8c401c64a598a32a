import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { load } from "@svc/cli/serve/Settings"
import { ConfigProvider, Effect, Option, Redacted } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

let directory: string
beforeAll(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), "svc-secrets-"))
})
afterAll(() => rmSync(directory, { recursive: true }))

const loaded = (env: Record<string, string>) =>
  Effect.runPromise(load.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))))
const refusal = (env: Record<string, string>) =>
  Effect.runPromise(Effect.flip(load.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))))
const file = (name: string, text: string) => {
  const place = path.join(directory, name)
  writeFileSync(place, text)
  return place
}

describe("a secret setting", () => {
  it.each([
    ["SVC_MASTER_KEY", "masterKey", Buffer.alloc(32, 1).toString("base64")],
    ["DATABASE_URL", "databaseUrl", "postgres://svc:s3cret@db/svc"],
    ["SVC_SMTP_RELAY_URL", "relayUrl", "smtp://u:p@relay.example.org:587"],
    ["SVC_ARC_KEY", "arcKey", "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----"],
  ] as const)("%s can be read from a file that %1$s_FILE names", async (name, member, value) => {
    const settings = await loaded({ [`${name}_FILE`]: file(name, `${value}\n`) })
    expect(Option.map(settings[member], Redacted.value)).toEqual(Option.some(value))
  })

  it.each([
    ["key", "key"],
    [" key \n\n", " key \n"],
    ["key\r\n", "key"],
  ])("loses only a final line break of its file: %j", async (text, value) => {
    const { arcKey } = await loaded({ SVC_ARC_KEY_FILE: file("line", text) })
    expect(Option.map(arcKey, Redacted.value)).toEqual(Option.some(value))
  })

  it("with several values can be read from a file", async () => {
    expect((await loaded({ SVC_INVITE_CODES_FILE: file("codes", "one, two\n") })).inviteCodes).toEqual(
      new Set(["one", "two"]),
    )
  })

  it("is rejected with a sentence that omits it if its file is missing, empty, or set together with the variable", async () => {
    const refusals = [
      await refusal({ SVC_MASTER_KEY_FILE: "/nowhere/key" }),
      await refusal({ SVC_MASTER_KEY_FILE: file("empty", "\n") }),
      await refusal({ DATABASE_URL: "postgres://a:s3cret@db/x", DATABASE_URL_FILE: file("url", "postgres://b") }),
    ].map(({ message }) => message)
    expect(refusals).toEqual([
      "SVC_MASTER_KEY_FILE names /nowhere/key, which cannot be read (ENOENT).",
      `SVC_MASTER_KEY_FILE names ${path.join(directory, "empty")}, which is empty.`,
      "DATABASE_URL and DATABASE_URL_FILE are both set: remove one.",
    ])
  })
})
