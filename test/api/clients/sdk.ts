/** A program on the client that `@hey-api/openapi-ts` made of the document: it compiles strictly, and walks. */
import { client } from "./generated/sdk/client.gen.js"
import * as sdk from "./generated/sdk/sdk.gen.js"

const [, , base = "", session = "", handle = ""] = process.argv
client.setConfig({ baseUrl: base, auth: session })
const assert = (holds: boolean, what: string) => {
  if (!holds) throw new Error(what)
}

const path = { handle }
const who = await sdk.sessionWhoami()
assert(who.data?.org.language === "en", "whoami")
const identities = await sdk.identitiesList()
assert(identities.data?.identities.some((one) => one.handle === handle) === true, "identities")
const messages = await sdk.messagesList({ path, query: { limit: 2, wait: 0 } })
assert(messages.data?.messages.length === 0, "messages")
const events = await sdk.eventsList({ query: { limit: 200 } })
const event = events.data?.events.find(({ type }) => type === "identity.ready")
assert(event !== undefined && event.type === "identity.ready" && event.handle.length > 0, "events")
const secret = await sdk.vaultPut({ path: { name: "api.token" }, body: { value: "x" } })
assert(secret.data?.name === "api.token", "secret")
const restored = await sdk.vaultRestore({ path: { name: "api.token" }, body: { version: 1 } })
assert(restored.data?.version === 2, "restore")
const tunnel = await sdk.tunnelsPatch({ path, body: { allowed_networks: ["127.0.0.1"], basic_auth: null } })
assert(tunnel.data?.settings.allowed_networks[0] === "127.0.0.1", "tunnel")
const key = await sdk.apiKeysCreate({ body: { name: "generated" } })
assert(key.data?.key.startsWith("svc_admin_") === true, "key")
const exports = await sdk.exportsCreate()
assert(exports.data?.status !== undefined, "export")
const refused = await sdk.apiKeysCreate({ body: { name: "" } })
const problem = refused.error
assert(problem !== undefined && problem.status === 400 && problem.title.length > 0, "problem")
const health = await sdk.healthReport()
assert(health.data?.status === "pass", "health")
process.stdout.write("walked\n")
