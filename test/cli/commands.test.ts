/** The requests of each command, its output and its exit code. */
import { writeFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { asAdmin, commands, foreign, problem, type Responses } from "../harness/Commands.ts"

const { home, run } = commands()

const minted = { key: "svc_new", api_key: { id: "k1", name: "ci", scopes: ["mail:read"], expires_at: null } }
const listedKey = {
  id: "k1",
  name: "ci",
  scope: "org",
  scopes: ["mail:read", "card:read"],
  networks: ["10.0.0.0/8"],
  expires_at: null,
  last_used_at: "2026-11-01T00:00:00.000Z",
}
const who = {
  org: { email: "grace@example.org" },
  caller: { kind: "admin_key", key_name: "laptop", key_id: "k7", handle: null },
}
const grant = {
  id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
  client_id: "c",
  client_name: "Editor",
  redirect_host: "editor.example",
  scopes: ["mail:read"],
  handles: ["ada", "bob"],
  networks: null,
  created_at: "2026-11-01T00:00:00.000Z",
  expires_at: "2027-11-01T00:00:00.000Z",
  last_used_at: null,
  last_used_address: null,
}
const verified = {
  valid: true,
  agent: { issuer: "https://a.example", subject: "agent:1", handle: "ada" },
  kid: "k",
  reason: null,
  detail: null,
}
const token = { token: "ey.a.b", expires_at: "2026-11-20T12:05:00.000Z" }
const jwt = "eyJh.eyJi.c2ln"
const at = "/api/identities/ada"
const signIn = { status: "started", site: "shop.example", redirect_url: "https://shop.example/cb?code=1" }

interface Expected {
  readonly requests?: ReadonlyArray<string>
  readonly out?: string | RegExp
  readonly errors?: RegExp
  readonly code?: number
}
type Case = readonly [line: string, responses: Responses, expected: Expected]

const cases: ReadonlyArray<Case> = [
  [
    "whoami",
    { "GET /": who },
    { requests: ["GET /api/auth/whoami"], out: /^grace@example.org as laptop \(admin_key\) at http:\/\/api.test\n$/ },
  ],
  ["whoami", { "GET /": { ...who, caller: { ...who.caller, handle: "ada" } } }, { out: /as @ada \(/ }],
  [
    "whoami",
    { "GET /": problem(401, "unauthenticated") },
    { code: 1, out: "", errors: /^svc: No: Because \(unauthenticated, fix_call\)\n$/ },
  ],
  [
    "whoami",
    { "GET /": new TypeError("fetch failed") },
    { code: 3, errors: /^svc: http:\/\/api.test is unreachable: fetch failed\n$/ },
  ],
  ["whoami --json", { "GET /": problem(401, "unauthenticated") }, { code: 1, errors: /^\{"title":"No".*\}\n$/ }],
  ["whoami --api http://other.test/", { "GET /": who }, { out: /at http:\/\/other.test\n$/ }],
  [
    "keys create ci",
    { "POST /": minted },
    {
      requests: ['POST /api/keys {"name":"ci"}'],
      out: "svc_new\n",
      errors: /^ci \(k1\) has the scopes mail:read and does not expire\.\n$/,
    },
  ],
  ["keys create ci --json", { "POST /": minted }, { out: `${JSON.stringify(minted)}\n` }],
  [
    "keys create ci --identity ada/x --scope mail:read,card:write --expires 2w --network 10.0.0.0/8,2001:db8::/32",
    { "POST /": minted },
    {
      requests: [
        'POST /api/identities/ada%2Fx/keys {"name":"ci","scopes":["mail:read","card:write"],"expires_in_days":14,"networks":["10.0.0.0/8","2001:db8::/32"]}',
      ],
    },
  ],
  ...["1", "365", "1d", "365d", "52w"].map((lifetime): Case => [
    `keys create ci --expires ${lifetime}`,
    { "POST /": minted },
    { out: "svc_new\n" },
  ]),
  ...["0", "366", "53w", "2y", "-1", "1.5"].map((lifetime): Case => [
    `keys create ci --expires=${lifetime}`,
    {},
    { code: 2, errors: /--expires takes 1 to 365 days/ },
  ]),
  [
    "keys list",
    { "GET /": { api_keys: [listedKey, { ...listedKey, id: "k2", networks: null }], next_cursor: null } },
    {
      requests: ["GET /api/keys?limit=200"],
      out: /^ID .*\nk1 .*mail:read card:read .*10\.0\.0\.0\/8.* 2026-11-01 00:00:00Z\nk2 .*everywhere.*\n/,
    },
  ],
  [
    "keys list",
    {
      "GET /": [
        { api_keys: [listedKey], next_cursor: "a+b" },
        { api_keys: [{ ...listedKey, id: "k2" }], next_cursor: null },
      ],
    },
    {
      requests: ["GET /api/keys?limit=200", "GET /api/keys?limit=200&cursor=a%2Bb"],
      out: /^ID .*\nk1 .*\nk2 .*\n/,
    },
  ],
  [
    "keys rotate k/1",
    { "POST /": minted },
    { requests: ['POST /api/keys/k%2F1/rotate {"overlap_seconds":86400}'], out: "svc_new\n" },
  ],
  ...(
    [
      ["90", 90],
      ["90s", 90],
      ["5m", 300],
      ["2h", 7_200],
      ["7d", 604_800],
      ["0d", 0],
    ] as const
  ).map(([given, seconds]): Case => [
    `keys rotate k1 --overlap ${given}`,
    { "POST /": minted },
    { requests: [`POST /api/keys/k1/rotate {"overlap_seconds":${seconds}}`] },
  ]),
  ["keys rotate k1 --overlap 2w", {}, { code: 2, errors: /--overlap takes a duration/ }],
  ["keys revoke k/1", { "DELETE /": 204 }, { requests: ["DELETE /api/keys/k%2F1"], out: "Revoked.\n" }],
  ["keys revoke k1 --json", { "DELETE /": 204 }, { out: '{"revoked":"k1"}\n' }],
  [
    "grants list",
    { "GET /": { grants: [grant, { ...grant, handles: null }], next_cursor: null } },
    {
      requests: ["GET /api/grants?limit=200"],
      out: /Editor +editor\.example +ada bob +mail:read.*\n.*Editor +editor\.example +all /,
    },
  ],
  [
    "grants list --json",
    {
      "GET /": [
        { grants: [grant], next_cursor: "c" },
        { grants: [{ ...grant, handles: null }], next_cursor: null },
      ],
    },
    { out: `${JSON.stringify({ grants: [grant, { ...grant, handles: null }], next_cursor: null })}\n` },
  ],
  ["grants revoke a/b", { "DELETE /": 204 }, { requests: ["DELETE /api/grants/a%2Fb"] }],
  ["open --print", {}, { requests: [], out: "http://api.test/console\n" }],
  ["open keys --print", {}, { out: "http://api.test/console/keys\n" }],
  ["open docs --print", {}, { out: "http://api.test/docs\n" }],
  ["open api --print", {}, { out: "http://api.test/api/docs\n" }],
  ["open @ada-1 --print", {}, { out: "http://api.test/console/identities/ada-1\n" }],
  ["open nothing --print", {}, { code: 2, errors: /no page nothing/ }],
  [
    "token --audience sts --handle @ada",
    { "POST /": token },
    { requests: [`POST ${at}/tokens {"audience":"sts","expires_in":300,"algorithm":"RS256"}`], out: "ey.a.b\n" },
  ],
  [
    "token --audience sts --handle ada --expires-in 77 --nonce n --algorithm ES256 --format json",
    { "POST /": token },
    {
      requests: [`POST ${at}/tokens {"audience":"sts","expires_in":77,"algorithm":"ES256","nonce":"n"}`],
      out: `${JSON.stringify(token)}\n`,
    },
  ],
  [
    "token --audience sts --handle ada --format kubernetes",
    { "POST /": token },
    {
      out: /^\{"apiVersion":"client\.authentication\.k8s\.io\/v1","kind":"ExecCredential","status":\{"token":"ey\.a\.b","expirationTimestamp":"2026-11-20T12:05:00\.000Z"\}\}\n$/,
    },
  ],
  [
    "token --audience sts",
    { "GET /": { ...who, caller: { ...who.caller, handle: "ada" } }, "POST /": token },
    { requests: ["GET /api/auth/whoami", `POST ${at}/tokens {"audience":"sts","expires_in":300,"algorithm":"RS256"}`] },
  ],
  ["token --audience sts", { "GET /": who }, { code: 2, errors: /--handle <handle>/ }],
  ["token --audience sts --every 4m", {}, { code: 2, errors: /--every needs --write/ }],
  ["token --audience sts --write x --every 5m", {}, { code: 2, errors: /shorter than the lifetime/ }],
  ["token --audience sts --write x --every 0", {}, { code: 2, errors: /shorter than the lifetime/ }],
  ...["299s", "4m --expires-in 241", "1h --expires-in 3601"].map((interval): Case => [
    `token --audience sts --handle ada --write x --every ${interval}`,
    { "POST /": problem(403, "scope_missing") },
    { code: 1, errors: /scope_missing/ },
  ]),
  [
    "token --audience sts --handle ada --write written.txt",
    { "POST /": token },
    { requests: [`POST ${at}/tokens {"audience":"sts","expires_in":300,"algorithm":"RS256"}`], out: "" },
  ],
  [
    `verify ${jwt} --audience me`,
    { "POST /": verified },
    {
      requests: [`POST /api/verify {"token":"${jwt}","audience":"me"}`],
      out: "Verified: ada, https://a.example, agent:1, key k\n",
    },
  ],
  [
    `verify ${jwt}`,
    { "POST /": { ...verified, agent: { issuer: "https://a.example", subject: null, handle: null } } },
    { out: "Verified: https://a.example, key k\n" },
  ],
  [
    `verify ${jwt}`,
    { "POST /": { ...verified, valid: false, agent: null, reason: "expired", detail: "It ended." } },
    { code: 1, out: "Not verified (expired): It ended.\n" },
  ],
  ["verify card.json", { "POST /": verified }, { requests: ['POST /api/verify {"card":{"name":"Ada"}}'] }],
  [
    `verify ${foreign}/@Ada/Card`,
    { "GET /@Ada/Card": { name: "Ada" }, "POST /": verified },
    {
      requests: [
        "GET /@Ada/Card without key",
        `POST /api/verify {"card":{"name":"Ada"},"card_url":"${foreign}/@Ada/Card"}`,
      ],
    },
  ],
  [
    "verify request.json",
    { "POST /": verified },
    { requests: ['POST /api/verify {"request":{"method":"GET","headers":{}}}'] },
  ],
  ["verify token.txt", { "POST /": verified }, { requests: [`POST /api/verify {"token":"${jwt}"}`] }],
  ["verify list.json", {}, { code: 2, errors: /neither a token nor a JSON object/ }],
  ["verify absent.json", {}, { code: 2, errors: /nor a file that can be read/ }],
  ["verify eyes", {}, { code: 2, errors: /nor a file that can be read/ }],
  ["verify a.b.c", {}, { code: 2, errors: /nor a file that can be read/ }],
  ["listen --secret whsec_short", {}, { code: 2, errors: /--secret must be whsec_ and at least 24 bytes/ }],
  ["fetch https://shop.example/ -H accept", {}, { code: 2, errors: /accept is not a header field/ }],
  [
    "sign-in https://api.test/oauth/authorize?a=1&b=2 --handle ada",
    { "POST /": signIn },
    {
      requests: [`POST ${at}/sign-ins {"authorization_url":"https://api.test/oauth/authorize?a=1&b=2"}`],
      out: "https://shop.example/cb?code=1\n",
      code: 0,
    },
  ],
  [
    "sign-in https://x --handle ada",
    { "POST /": { ...signIn, redirect_url: null } },
    {
      code: 1,
      out: "",
      errors: /sign-in at shop\.example awaits approval: http:\/\/api\.test\/console\/identities\/ada\/proof/,
    },
  ],
]

describe("A command", () => {
  for (const [name, text] of [
    ["card.json", '{"name":"Ada"}'],
    ["request.json", '{"method":"GET","headers":{}}'],
    ["token.txt", `${jwt}\n`],
    ["list.json", "[1]"],
  ] as const)
    writeFileSync(path.join(home, name), text)

  it.each(cases)("sends the requests and prints the response: svc %s", async (line, responses, expected) => {
    const words = line.split(" ").map((word) => (/\.(?:json|txt)$/.test(word) ? path.join(home, word) : word))
    const { code, errors, out, requests } = await run(words, responses, asAdmin)
    expect(code, errors).toBe(expected.code ?? 0)
    if (expected.requests !== undefined) expect(requests).toEqual(expected.requests)
    if (expected.code === 2) expect(requests.filter((one) => !one.startsWith("GET"))).toEqual([])
    if (typeof expected.out === "string") expect(out).toBe(expected.out)
    if (expected.out instanceof RegExp) expect(out).toMatch(expected.out)
    if (expected.errors !== undefined) expect(errors).toMatch(expected.errors)
  })
})
