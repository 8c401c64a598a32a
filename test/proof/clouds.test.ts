/** `svc token` and `svc credentials`, and identity tokens as other libraries verify them. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose"
import * as oidc from "openid-client"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { has } from "../harness/Programs.ts"
import { runHere } from "../harness/Commands.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { startSvc } from "../harness/Svc.ts"

let service: TestService
let session: string
let handle: string
let key: string
let id: string
let home: string
beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), "svc-clouds-"))
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
  id = made.identity.id
  const body = { audiences: "any" }
  await call(service.base, "PATCH", `/api/identities/${handle}/proof`, { token: session, body })
})
afterAll(async () => {
  rmSync(home, { recursive: true })
})

const around = () => ({ home, env: { SVC_KEY: key, SVC_API_URL: service.base } })
const svc = (...words: ReadonlyArray<string>) => runHere(around(), ...words)
const file = () => path.join(home, "token")
const verified = async (token: string, audience: string) =>
  (
    await jwtVerify(token, createRemoteJWKSet(new URL(`${service.base}/.well-known/jwks.json`)), {
      issuer: service.base,
      audience,
    })
  ).payload

describe("svc token", () => {
  it("prints a token for the audience, or what a kubectl plugin prints", async () => {
    const { code, out, errors } = await svc("token", "--audience", "sts.amazonaws.com", "--nonce", "n-1")
    expect({ code, errors }).toEqual({ code: 0, errors: "" })
    const claims = await verified(out.trim(), "sts.amazonaws.com")
    expect(claims).toMatchObject({ sub: `agent:${id}`, nonce: "n-1" })
    const plugin = await svc("token", "--audience", "kubernetes", "--format", "kubernetes", "--expires-in", "60")
    const credential = JSON.parse(plugin.out)
    expect(credential).toMatchObject({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential" })
    const { exp } = await verified(credential.status.token, "kubernetes")
    expect(new Date(credential.status.expirationTimestamp).getTime()).toBe(exp! * 1000)
  })

  it("keeps a file fresh that only the user can read", async () => {
    const running = startSvc(around(), "token", "--audience", "a.example", "--write", file(), "--every", "1s")
    try {
      const read = async () => (existsSync(file()) ? readFileSync(file(), "utf8") : "")
      const first = await eventually(read, (text) => text !== "")
      expect(statSync(file()).mode & 0o777).toBe(0o600)
      const next = await eventually(read, (text) => text !== first)
      expect(next.split(".")).toHaveLength(3)
      for (const token of [first, next]) await verified(token, "a.example")
      expect(decodeJwt(next).jti).not.toBe(decodeJwt(first).jti)
    } finally {
      running.stop()
      await running.ended
    }
  })

  it("ends with the reason when no token may be issued, and refuses an interval that is too long", async () => {
    const wrong = await svc("token", "--audience", "a.example", "--write", file(), "--every", "5m")
    expect([wrong.code, wrong.errors]).toEqual([2, expect.stringContaining("shorter than the lifetime")])
    expect((await svc("token", "--audience", "a.example", "--every", "1m")).code).toBe(2)
    const ours = await svc("token", "--audience", service.base)
    expect([ours.code, ours.errors]).toEqual([1, expect.stringContaining("audience_not_allowed")])
  })

  it("leaves svc token create to the tool", async () => {
    const { code, out } = await svc("token", "create", handle, "a.example", "--json")
    expect(code).toBe(0)
    await verified(JSON.parse(out).token, "a.example")
  })
})

describe("svc credentials", () => {
  const host = () => service.base.replace("http://", "")

  it("prints a profile of AWS and the trust policy of its role", async () => {
    const words = ["credentials", "aws", "--role-arn", "arn:aws:iam::123456789012:role/agents", "--file", file()]
    const { code, out, errors } = await svc(...words)
    expect(code).toBe(0)
    expect(out).toContain(`[profile ${handle}]\nrole_arn = arn:aws:iam::123456789012:role/agents\n`)
    expect(out).toContain(`role_session_name = ${handle}\n`)
    expect(out).toContain(`web_identity_token_file = ${file()}\n`)
    expect(errors).toContain(`svc token --audience sts.amazonaws.com --handle ${handle} --write ${file()} --every 4m`)
    const spaced = path.join(home, "a token")
    expect((await svc(...words.with(-1, spaced))).errors).toContain(`--write "${spaced}" --every`)
    const [statement] = JSON.parse((await svc(...words, "--trust")).out).Statement
    expect(statement.Principal.Federated).toBe(`arn:aws:iam::123456789012:oidc-provider/${host()}`)
    expect(statement.Condition.StringEquals).toEqual({
      [`${host()}:aud`]: "sts.amazonaws.com",
      [`${host()}:sub`]: `agent:${id}`,
    })
    const elsewhere = ["credentials", "aws", "--role-arn", "arn:aws-cn:iam::123456789012:role/agents", "--trust"]
    expect((await svc(...elsewhere)).out).toContain('"arn:aws-cn:iam::123456789012:oidc-provider/')
    expect((await svc("credentials", "aws", "--role-arn", "agents")).code).toBe(2)
  })

  it("prints an external account of Google Cloud and the principal to allow", async () => {
    const provider = "projects/1234/locations/global/workloadIdentityPools/agents/providers/svc"
    const words = ["credentials", "gcp", "--provider", provider, "--file", file()]
    expect(JSON.parse((await svc(...words)).out)).toMatchObject({
      type: "external_account",
      audience: `//iam.googleapis.com/${provider}`,
      credential_source: { file: file() },
    })
    const account = "robot@agents.iam.gserviceaccount.com"
    expect(JSON.parse((await svc(...words, "--service-account", account)).out).service_account_impersonation_url).toBe(
      `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${account}:generateAccessToken`,
    )
    expect((await svc("credentials", "gcp", "--provider", "agents")).code).toBe(2)
    expect(JSON.parse((await svc(...words, "--trust")).out).principal).toBe(
      `principal://iam.googleapis.com/projects/1234/locations/global/workloadIdentityPools/agents/subject/agent:${id}`,
    )
  })

  it("prints the environment of Azure and the federated credential", async () => {
    const words = ["credentials", "azure", "--client-id", "c", "--tenant-id", "t", "--file", file()]
    expect((await svc(...words)).out).toBe(
      `AZURE_CLIENT_ID=c\nAZURE_TENANT_ID=t\nAZURE_FEDERATED_TOKEN_FILE=${file()}\n`,
    )
    const trust = JSON.parse((await svc(...words, "--trust")).out)
    expect(trust).toMatchObject({
      issuer: service.base,
      subject: `agent:${id}`,
      audiences: ["api://AzureADTokenExchange"],
    })
  })

  it("prints a kubectl user whose plugin returns a credential", async () => {
    const config = JSON.parse((await svc("credentials", "kubernetes")).out)
    const { command, args } = config.users[0].user.exec
    expect(command).toBe("svc")
    const { status } = JSON.parse((await svc(...args)).out)
    await verified(status.token, "kubernetes")
    expect((await svc("credentials", "kubernetes", "--trust")).out).toContain(`${service.base}#agent:${id}`)
  })
})

describe("an identity token", () => {
  const tokenOf = async () =>
    (
      await call(service.base, "POST", `/api/identities/${handle}/tokens`, {
        token: key,
        body: { audience: "api.example" },
      })
    ).body.token as string

  it("is verified by openid-client's discovery, whose key set knows its key", async () => {
    const found = await oidc.discovery(new URL(service.base), "api.example", undefined, oidc.None(), {
      execute: [oidc.allowInsecureRequests],
    })
    const { issuer, jwks_uri } = found.serverMetadata()
    const { payload } = await jwtVerify(await tokenOf(), createRemoteJWKSet(new URL(jwks_uri!)), {
      issuer,
      audience: "api.example",
    })
    expect(payload.sub).toBe(`agent:${id}`)
  })

  const python = "/usr/bin/python3"
  it.skipIf(!has("pyjwt"))("is verified by PyJWT, and refused when altered or meant for another audience", async () => {
    const script = path.join(home, "verify.py")
    writeFileSync(
      script,
      `import json, sys, jwt
keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(json.loads(sys.argv[2])).keys}
token, issuer, audience = sys.argv[1], sys.argv[3], sys.argv[4]
try:
    key = keys[jwt.get_unverified_header(token)["kid"]].key
    print(jwt.decode(token, key, algorithms=["RS256"], audience=audience, issuer=issuer)["sub"])
except jwt.InvalidTokenError as error:
    print(type(error).__name__)
`,
    )
    const keys = JSON.stringify((await call(service.base, "GET", "/.well-known/jwks.json")).body)
    const token = await tokenOf()
    const verify = (given: string, audience = "api.example") =>
      execFileSync(python, [script, given, keys, service.base, audience], { encoding: "utf8" }).trim()
    expect(verify(token)).toBe(`agent:${id}`)
    expect(verify(token, "other.example")).toBe("InvalidAudienceError")
    const [head, payload, signature] = token.split(".") as [string, string, string]
    const changed = `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`
    expect(verify(`${head}.${payload}.${changed}`)).toBe("InvalidSignatureError")
  })
})
