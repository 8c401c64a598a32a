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
import { asAdmin, commands, runHere } from "../harness/Commands.ts"
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
  const { run } = commands()
  const arn = "arn:aws-cn:iam::123456789012:role/team/agents"
  const provider = "projects/12/locations/global/workloadIdentityPools/pool/providers/svc"
  /** What a command reads for the configuration of a cloud. */
  const forCloud = {
    "GET /.well-known/openid-configuration": { issuer: "https://a.example/x" },
    "GET /api/identities/": { id: "i1", handle: "ada" },
  }
  const document = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
  const keepFresh = (audience: string) =>
    new RegExp(
      `^svc: Keep the file fresh: svc token --audience ${audience} --handle ada --write /t/token --every 4m\n$`,
    )
  const externalAccount = {
    type: "external_account",
    audience: `//iam.googleapis.com/${provider}`,
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: "https://sts.googleapis.com/v1/token",
    credential_source: { file: "/t/token" },
  }
  const plugin = (audience: string) => ({
    apiVersion: "client.authentication.k8s.io/v1",
    interactiveMode: "Never",
    command: "svc",
    args: ["token", "--format", "kubernetes", "--audience", audience, "--handle", "ada", "--api", "http://api.test"],
  })

  type Expected = { readonly code?: number; readonly out?: string; readonly errors?: RegExp }

  it.each<[string, Expected]>([
    [
      `aws --handle @Ada --role-arn ${arn} --file /t/token`,
      {
        out: `# For ~/.aws/config\n[profile ada]\nrole_arn = ${arn}\nrole_session_name = ada\nweb_identity_token_file = /t/token\n`,
        errors: keepFresh("sts.amazonaws.com"),
      },
    ],
    [
      `aws --handle ada --role-arn ${arn} --trust`,
      {
        out: document({
          Version: "2012-10-17",
          Statement: [
            {
              Effect: "Allow",
              Principal: { Federated: "arn:aws-cn:iam::123456789012:oidc-provider/a.example/x" },
              Action: "sts:AssumeRoleWithWebIdentity",
              Condition: {
                StringEquals: { "a.example/x:aud": "sts.amazonaws.com", "a.example/x:sub": "agent:i1" },
              },
            },
          ],
        }),
        errors: /^$/,
      },
    ],
    ["aws --role-arn arn:aws:iam::1:role/agents", { code: 2, errors: /is not the ARN of a role/ }],
    [
      `gcp --handle ada --provider ${provider} --file /t/token`,
      { out: document(externalAccount), errors: keepFresh(externalAccount.audience) },
    ],
    [
      `gcp --handle ada --provider ${provider} --file /t/token --service-account robot@p.iam.gserviceaccount.com`,
      {
        out: document({
          ...externalAccount,
          service_account_impersonation_url:
            "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/robot@p.iam.gserviceaccount.com:generateAccessToken",
        }),
      },
    ],
    [
      `gcp --handle ada --provider ${provider} --trust`,
      {
        out: document({
          issuer: "https://a.example/x",
          attribute_mapping: { "google.subject": "assertion.sub" },
          allowed_audience: externalAccount.audience,
          principal:
            "principal://iam.googleapis.com/projects/12/locations/global/workloadIdentityPools/pool/subject/agent:i1",
        }),
      },
    ],
    [`gcp --provider ${provider}/x`, { code: 2, errors: /is not the full name of a provider/ }],
    [
      "azure --handle ada --client-id c --tenant-id t",
      { out: `AZURE_CLIENT_ID=c\nAZURE_TENANT_ID=t\nAZURE_FEDERATED_TOKEN_FILE=${path.resolve("svc-token")}\n` },
    ],
    [
      "azure --handle ada --client-id c --tenant-id t --trust",
      {
        out: document({
          name: "ada",
          issuer: "https://a.example/x",
          subject: "agent:i1",
          audiences: ["api://AzureADTokenExchange"],
          description: "An agent's Identity",
        }),
      },
    ],
    [
      "kubernetes --handle ada --audience cluster-1",
      {
        out: document({
          apiVersion: "v1",
          kind: "Config",
          users: [{ name: "ada", user: { exec: plugin("cluster-1") } }],
        }),
        // The plugin gets its tokens itself.
        errors: /^$/,
      },
    ],
    [
      "kubernetes --handle ada --trust",
      {
        out: "--oidc-issuer-url=https://a.example/x\n--oidc-client-id=kubernetes\n--oidc-username-claim=sub\n# The user for role bindings: https://a.example/x#agent:i1\n",
      },
    ],
    ["kubernetes --audience=", { code: 2, errors: /An audience has no spaces/ }],
  ])("prints the configuration of the cloud: svc credentials %s", async (line, { code = 0, out = "", errors }) => {
    const printed = await run(["credentials", ...line.split(" ")], forCloud, asAdmin)
    expect([printed.code, printed.out], printed.errors).toEqual([code, out])
    if (errors !== undefined) expect(printed.errors).toMatch(errors)
  })

  it("quotes the file in the command that keeps it fresh", async () => {
    const words = ["credentials", "azure", "--handle", "ada", "--client-id", "c", "--tenant-id", "t"]
    const { errors } = await run([...words, "--file", "/t/a token"], forCloud, asAdmin)
    expect(errors).toContain('--write "/t/a token" --every 4m')
  })

  it("prints a kubectl user whose plugin returns a credential", async () => {
    const config = JSON.parse((await svc("credentials", "kubernetes")).out)
    const { args } = config.users[0].user.exec
    const { status } = JSON.parse((await svc(...args)).out)
    await verified(status.token, "kubernetes")
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
