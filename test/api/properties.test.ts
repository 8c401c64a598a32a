import { Schema } from "effect"
import * as fc from "fast-check"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { type Operation, operations, pathOf } from "./Operations.ts"

let service: TestService
let session: string
let handle: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})

const send = (operation: Operation, body: unknown, path = pathOf(operation, handle), headers = {}) =>
  call(service.base, operation.method, path, {
    ...(operation.access === undefined ? {} : { token: session }),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: { "content-type": "application/json", ...headers },
  })

const expectDocumented = (operation: Operation, status: number, body: unknown) => {
  expect(status, JSON.stringify(body)).not.toBe(500)
  expect([...operation.statuses], `${operation.id} answered ${status}: ${JSON.stringify(body)}`).toContain(status)
}

/** Returns a function that lists the violations of a body by the endpoint's own schema. */
const judging = (operation: Operation) => {
  const decoders = [...operation.endpoint.payload.values()]
    .flatMap(({ schemas }: any) => schemas as ReadonlyArray<Schema.Codec<unknown>>)
    .map((schema) => Schema.decodeUnknownResult(Schema.toCodecJson(schema)))
  return (body: unknown) => decoders.some((decode) => decode(body, { onExcessProperty: "error" })._tag === "Success")
}

const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: "binary" }),
  fc.constantFrom("\0", "\ud800", "x".repeat(3000), -1, 1e308, "__proto__", [], {}, null),
)

describe("Body of", () => {
  const withBody = operations.filter(({ body }) => typeof body === "object" && body !== null)
  it.each(withBody.map((operation) => [operation.id, operation] as const))(
    "%s that violates the schema is a 400 that names the member, never a 500",
    async (_, operation) => {
      const members = Object.keys(operation.body)
      const accepts = judging(operation)
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...members, "stranger", "__proto__", "constructor"),
          value,
          fc.boolean(),
          async (member, replaced, drop) => {
            // Generated values must not delete the account or reach the limits of magic links.
            const body: Record<string, unknown> = JSON.parse(JSON.stringify(operation.body))
            Object.defineProperty(body, member, {
              value: replaced,
              enumerable: true,
              configurable: true,
              writable: true,
            })
            if (drop && members.includes(member)) delete body[member]
            const answer = await send(operation, body)
            expectDocumented(operation, answer.status, answer.body)
            if (!accepts(JSON.parse(JSON.stringify(body)))) {
              expect([400, 413], JSON.stringify(body)).toContain(answer.status)
              expect(
                answer.body.errors.some(({ path }: { path: string }) => path === "" || path.startsWith(`/${member}`)),
                `${JSON.stringify(body)}: ${JSON.stringify(answer.body)}`,
              ).toBe(true)
            }
          },
        ),
        { numRuns: 25 },
      )
    },
  )

  it.each(withBody.map((operation) => [operation.id, operation] as const))(
    "%s that is no object, or too deep, is a 400",
    async (_, operation) => {
      // If the body is optional, null counts as an omitted body.
      const without = [
        "account.remove",
        "exports.create",
        "sending.refuse",
        "api_keys.rotate",
        "device_confirmation.approve",
      ]
      const none = without.includes(operation.id) ? [] : [null]
      for (const body of [[], "text", 7, ...none, true]) {
        const answer = await send(operation, body)
        expect(answer.status).toBe(400)
      }
      const deep = await call(service.base, operation.method, pathOf(operation, handle), {
        token: session,
        body: `{"x":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
      })
      expect(deep.status).toBe(400)
    },
  )
})

it("Members of a body are rejected by name at every operation that takes none", async () => {
  const bodyless = operations.filter(({ method, endpoint }) => method !== "GET" && endpoint.payload.size === 0)
  expect(bodyless.length).toBeGreaterThan(20)
  for (const operation of bodyless) {
    const { status, body } = await send(operation, { force: true })
    const named = [{ path: "/force", message: "unknown member; the body takes none" }]
    expect([status, body.code, body.errors], operation.id).toEqual([400, "invalid_request", named])
  }
  const retry = bodyless.find(({ id }) => id === "identities.retry")!
  expect((await send(retry, [])).body.errors).toEqual([{ path: "", message: "expected no body" }])
  // Many clients send an empty object with every request.
  for (const empty of [{}, null]) expect((await send(retry, empty)).status).toBe(202)
})

describe("Path and query of", () => {
  const withText = operations.filter(({ path, id }) => path.includes(":") && !id.startsWith("events.stream"))
  const segment = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((text) => text.isWellFormed()),
    fc.constantFrom("\0", "..", "%", "a/b", "ä".repeat(300), "1e400", "evt_", "-"),
  )
  it.each(withText.map((operation) => [operation.id, operation] as const))(
    "%s accept any text without a 500",
    async (_, operation) => {
      await fc.assert(
        fc.asyncProperty(segment, segment, async (one, two) => {
          const path = operation.path.replace(/:(\w+)/g, (__, name: string) =>
            encodeURIComponent(name === "handle" ? one : two),
          )
          const answer = await send(operation, operation.body, path)
          if (answer.status === 404 && answer.body?.detail === "The path does not exist.") return
          // A dot segment changes the path.
          if (answer.status === 405) return
          expectDocumented(operation, answer.status, answer.body)
        }),
        { numRuns: 15 },
      )
    },
  )

  it.each([
    ["/api/events?limit=", ["0", "201", "x", "1.5", "", "-1", "1e9"]],
    ["/api/events?type=", ["nothing", "", "webhook.test"]],
    ["/api/events?cursor=", ["", "x", "AAAA"]],
    ["/api/vault/secrets?identity=", ["%00"]],
  ] as const)("%s reject invalid values", async (path, values) => {
    for (const one of values) {
      const answer = await call(service.base, "GET", `${path}${one}`, { token: session })
      expect([answer.status, answer.body.code], `${path}${one}`).toEqual([400, expect.stringMatching(/^invalid_/)])
    }
  })

  it("reject an id whose digits are no UUID", async () => {
    const ids = ["msg_", "thr_", "wh_", "evt_", "exp_", "aud_"].map((prefix) => `${prefix}01jd0000000000000000000000`)
    for (const operation of operations.filter(({ path }) => /:(id|delivery_id)\b/.test(path))) {
      for (const id of ids) {
        const path = operation.path.replace(":handle", handle).replace(/:(id|delivery_id)\b/g, id)
        const answer = await send(operation, operation.body, path)
        expectDocumented(operation, answer.status, answer.body)
      }
    }
  })

  it("with an empty segment match no route", async () => {
    for (const operation of operations) {
      const at = pathOf(operation, handle).split("?")[0]!
      for (const path of [`${at}/`, at.replace("/api/", "/api//"), at.replace(handle, "")]) {
        if (path === at) continue
        const answer = await send(operation, operation.body, path)
        expect([answer.status, answer.body.code], path).toEqual([404, "not_found"])
      }
    }
  })

  it("an undocumented method is a 405 with Allow", async () => {
    const paths = Map.groupBy(operations, ({ path }) => path)
    for (const known of paths.values()) {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        if (known.some((operation) => operation.method === method)) continue
        const answer = await call(service.base, method, pathOf(known[0]!, handle), { token: session })
        // The path may match another operation (`/api/auth/device/token` is also a path with a user code).
        if (answer.status !== 405) {
          expect(
            operations.some(
              (other) =>
                other.method === method &&
                new RegExp(`^${other.path.replace(/:\w+/g, "[^/]+")}$`).test(pathOf(known[0]!, handle)),
            ),
          ).toBe(true)
          continue
        }
        expect(answer.body.code).toBe("method_not_allowed")
        expect(answer.headers.get("allow")).toContain(known[0]!.method)
      }
    }
  })
})
