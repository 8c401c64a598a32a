/** A program on types that `openapi-typescript` made of the document: it compiles strictly, and walks. */
import createClient from "openapi-fetch"
import type { components, paths } from "./generated/fetch/schema.js"

const [, , base = "", session = "", handle = ""] = process.argv
const client = createClient<paths>({ baseUrl: base, headers: { authorization: `Bearer ${session}` } })
const assert = (holds: boolean, what: string) => {
  if (!holds) throw new Error(what)
}

const path = { handle }
const who = await client.GET("/api/auth/whoami")
assert(who.data?.caller.kind === "session", "whoami")
const ready: components["schemas"]["Identity"] | undefined = (
  await client.GET("/api/identities/{handle}", { params: { path } })
).data
assert(ready?.status === "ready" && ready.tunnel.port !== null, "identity")

// Numbers are numbers.
const messages = await client.GET("/api/identities/{handle}/messages", {
  params: { path, query: { limit: 3, offset: 0, wait: 0 } },
})
assert(Array.isArray(messages.data?.messages), "messages")
const events = await client.GET("/api/events", { params: { query: { limit: 1, handle, type: "identity.ready" } } })
const event = events.data?.events[0]
assert(event?.type === "identity.ready", "events")

const put = await client.PUT("/api/vault/secrets/{name}", {
  params: { path: { name: "db.pass" }, query: { identity: handle } },
  body: { value: "s3cret", description: null },
})
assert(put.data?.version === 1, "vault put")
const value = await client.GET("/api/vault/secrets/{name}/value", {
  params: { path: { name: "db.pass" }, query: { identity: `@${handle}`, version: 1 } },
})
assert(value.data?.value === "s3cret", "vault value")

const card = await client.PATCH("/api/identities/{handle}/card", {
  params: { path },
  body: { description: "Generated", documentation_url: null, capabilities: { streaming: true } },
})
assert(card.data?.capabilities.streaming === true && card.data.documentation_url === null, "card")
const hook = await client.POST("/api/identities/{handle}/webhooks", {
  params: { path },
  body: { url: "http://127.0.0.1:9/", event_types: ["email.received"] },
})
assert(hook.response.headers.get("location")?.startsWith("/api/identities/") === true, "webhook")
if (hook.data !== undefined) {
  const deliveries = await client.GET("/api/identities/{handle}/webhooks/{id}/deliveries", {
    params: { path: { handle, id: hook.data.id }, query: { limit: 5 } },
  })
  assert(deliveries.data?.deliveries.length === 0, "deliveries")
}

// A body that may be left out is left out; what a problem has can be read without asking whether it is there.
const made = await client.POST("/api/exports")
assert(made.data?.identity === null, "export")
const missing = await client.GET("/api/identities/{handle}", { params: { path: { handle: "nobody-here" } } })
const problem = missing.error
assert(
  problem !== undefined && problem.status === 404 && problem.doc_url.length > 0 && problem.instance.length > 0,
  "problem",
)
if (problem?.code === "not_found") assert(problem.agent_hint === "fix_call", "hint")
const free = await client.GET("/api/handles/{handle}", { params: { path: { handle } } })
assert(free.data?.available === false && free.data.code === "handle_taken", "check")
const status = await client.PATCH("/api/identities/{handle}/mail", { params: { path }, body: { outgoing: "stopped" } })
assert(status.data?.stopped_by === "session", "mail")
process.stdout.write("walked\n")
