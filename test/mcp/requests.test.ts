/** The REST request of a tool call, and which arguments make none. */
import { requestOf, type ToolRequest } from "@svc/api/mcp/Requests"
import { byName } from "@svc/api/mcp/Tools"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { describe, expect, it } from "vitest"

const made = (tool: string, input: object) => requestOf(byName.get(tool)!, input, "Bearer key")
const requested = (tool: string, input: object) => {
  const { method, target, headers, body } = made(tool, input) as ToolRequest
  return { line: `${method} ${target}`, headers, body }
}
const refused = (tool: string, input: object) => {
  const problem = made(tool, input)
  return problem instanceof InvalidRequest ? [problem.detail, problem.errors] : "was made"
}

describe("The request of a tool call", () => {
  const authorization = "Bearer key"

  it("has path arguments in the path, the query's in the query, and the others in the body", () => {
    expect(requested("svc_attachment_get", { handle: "a/b", id: "msg_1", index: 2, offset: 10 })).toEqual({
      line: "GET /api/identities/a%2Fb/messages/msg_1/attachments/2/text?offset=10",
      headers: { authorization },
      body: undefined,
    })
    expect(requested("svc_vault_set", { name: "n", identity: "ada", value: "v" })).toEqual({
      line: "PUT /api/vault/secrets/n?identity=ada",
      headers: { authorization, "content-type": "application/json" },
      body: '{"value":"v"}',
    })
    const mail = { handle: "ada", to: ["a@example.org"], text: "x", allow_duplicate: true, idempotency_key: "k 1" }
    expect(requested("svc_email_send", mail)).toEqual({
      line: "POST /api/identities/ada/messages/send",
      headers: { authorization, "content-type": "application/json", "idempotency-key": "k 1" },
      body: expect.not.stringMatching(/handle|duplicate|idempotency/),
    })
  })

  it("goes to the endpoint that an argument selects, with the other arguments", () => {
    const id = { handle: "ada", id: "msg_1" }
    const { body, line } = requested("svc_approval_decide", { ...id, decision: "refuse", reason: "No" })
    expect([line, body]).toEqual(["POST /api/identities/ada/approvals/msg_1/refuse", '{"reason":"No"}'])
    expect(requested("svc_approval_decide", { ...id, decision: "approve", content_sha256: "a" }).line).toBe(
      "POST /api/identities/ada/approvals/msg_1/approve",
    )
    for (const decision of [undefined, "toString", 1])
      expect(refused("svc_approval_decide", { ...id, decision })).toEqual([
        "The argument decision is not valid: expected one of approve, refuse.",
        [{ path: "/decision", message: "expected one of approve, refuse" }],
      ])
  })

  it("asks for a page of 50 entries if the model gives no limit", () => {
    expect(requested("svc_identity_list", {}).line).toBe("GET /api/identities?limit=50")
    expect(requested("svc_identity_list", { limit: 200 }).line).toBe("GET /api/identities?limit=200")
  })

  it("is not made without a name in the path", () => {
    expect(refused("svc_email_list", {})).toEqual([
      expect.stringMatching(/^The argument handle is missing: it names the Identity/),
      [{ path: "/handle", message: "expected the Handle of an Identity" }],
    ])
    expect(refused("svc_attachment_get", { id: "msg_1" })).toEqual([
      "The argument handle is missing or not a name.",
      ["/handle", "/index"].map((path) => ({ path, message: "expected text that is a name" })),
    ])
    for (const handle of ["", ".", "..", "\ud800", 7, null, ["ada"]])
      expect([handle, refused("svc_email_list", { handle })[0]]).toEqual([
        handle,
        "The argument handle is missing or not a name.",
      ])
    expect(requested("svc_email_list", { handle: "..." }).line).toMatch(/^GET \/api\/identities\/\.\.\.\/messages\b/)
    for (const index of [1.5, 2 ** 53, true])
      expect(refused("svc_attachment_get", { handle: "ada", id: "msg_1", index })).not.toBe("was made")
  })

  it("is not made with an unknown argument, of which a part is echoed", () => {
    expect(refused("svc_identity_list", { x: undefined })).not.toBe("was made")
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`${"x".repeat(100)}${n}`, 1]))
    const [detail, errors] = refused("svc_identity_list", many)
    expect(detail).toBe(`Unknown argument ${"x".repeat(100)}. The tool takes limit, cursor.`)
    expect(errors).toEqual(Array(20).fill({ path: `/${"x".repeat(100)}`, message: "unknown member" }))
  })

  it("is not made with an argument that does not fit into a URL", () => {
    const of = (length: number) => "x".repeat(length)
    const tooLong = (name: string) => [
      `The argument ${name} is too long.`,
      [{ path: `/${name}`, message: "expected a length of at most 8192" }],
    ]
    expect(refused("svc_email_list", { handle: of(8192) })).toBe("was made")
    expect(refused("svc_email_list", { handle: of(8193) })).toEqual(tooLong("handle"))
    expect(refused("svc_identity_list", { cursor: of(8192) })).toBe("was made")
    expect(refused("svc_identity_list", { cursor: of(8193) })).toEqual(tooLong("cursor"))
    // The body has room for more.
    expect(refused("svc_vault_set", { name: "n", value: of(8193) })).toBe("was made")
  })

  it("is not made with an invalid argument of the tool itself", () => {
    const send = (more: object) => refused("svc_email_send", { handle: "ada", to: [], text: "x", ...more })
    const expected = "expected 1 to 255 printable ASCII characters without quotes"
    for (const key of ["", " k", 'k"', "ü", "k\n", 7, "x".repeat(256)])
      expect([key, send({ idempotency_key: key })]).toEqual([
        key,
        [`The argument idempotency_key is not valid: ${expected}.`, [{ path: "/idempotency_key", message: expected }]],
      ])
    expect(send({ idempotency_key: "x".repeat(255) })).toBe("was made")
    expect(send({ allow_duplicate: "true" })[0]).toMatch(/allow_duplicate is not valid: expected true or false/)
    expect(send({ allow_duplicate: false })).toBe("was made")
    const message = { handle: "ada", id: "msg_1" }
    expect(refused("svc_email_get", { ...message, text_offset: 0, text_limit: 1 })).toBe("was made")
    expect(refused("svc_email_get", { ...message, text_offset: -1 })[0]).toMatch(/expected an integer of 0 or more/)
  })
})
