/** The lines of docs/proof.md with which others verify a card and a token, run as they are written there. */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { has } from "../harness/Programs.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

const document = readFileSync(new URL("../../docs/proof.md", import.meta.url), "utf8")
/** Returns the only block of the document in this language. */
const lines = (language: string): string => {
  const blocks = [...document.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, of]) => of === language)
  expect(blocks).toHaveLength(1)
  return blocks[0]![2]!
}

let service: TestService
let session: string
let handle: string
const folder = mkdtempSync(path.join(tmpdir(), "svc-lines-"))
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const run = (program: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
  new Promise<{ code: number | null; text: string }>((resolve) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { PATH: "/usr/bin:/bin", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let text = ""
    for (const output of [child.stdout, child.stderr]) output.on("data", (chunk: Buffer) => (text += chunk.toString()))
    child.on("close", (code) => resolve({ code, text }))
  })

describe("the documented lines", () => {
  it.skipIf(!has("openssl") || !has("jq") || !has("curl"))(
    "of openssl verify a card, and refuse an altered one",
    async () => {
      const address = `${service.base}/@${handle}/agent-card.json`
      const verify = (CARD: string) => run("/bin/bash", ["-euc", lines("bash")], { CARD })
      const found = await verify(address)
      expect([found.code, found.text.trim()]).toEqual([0, "Signature Verified Successfully"])
      const card = (await (await fetch(address)).json()) as object
      const altered = createServer((_, response) => response.end(JSON.stringify({ ...card, description: "Another." })))
      await new Promise<void>((resolve) => altered.listen(0, "127.0.0.1", resolve))
      try {
        const refused = await verify(`http://127.0.0.1:${(altered.address() as AddressInfo).port}/`)
        expect([refused.code, refused.text.trim()]).toEqual([1, "Signature Verification Failure"])
      } finally {
        altered.close()
      }
    },
  )

  it.skipIf(!has("pyjwt"))("of Python verify a token, and refuse one for another audience", async () => {
    const tokenFor = async (audience: string) =>
      (await call(service.base, "POST", `/api/identities/${handle}/tokens`, { token: session, body: { audience } }))
        .body.token as string
    const verify = (TOKEN: string) => run("/usr/bin/python3", ["-c", lines("python")], { ISSUER: service.base, TOKEN })
    expect(await verify(await tokenFor("https://api.example"))).toEqual({ code: 0, text: `${handle}\n` })
    const refused = await verify(await tokenFor("https://other.example"))
    expect([refused.code, refused.text]).toEqual([1, expect.stringContaining("InvalidAudienceError")])
  })
})
