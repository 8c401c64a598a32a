/** An account as it may look after a week: agents, mail, a working and a failing Webhook, secrets, and a connected platform. */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"
import type { MastodonServer } from "../connectors/mastodon/Server.ts"

export interface ExampleAccount {
  readonly base: string
  readonly smtpPort: number
  /** Targets of Webhooks that respond with 200 and with 503. */
  readonly receiver: { readonly well: string; readonly ill: string }
  readonly mastodon: MastodonServer
}

const letters = [
  ["Mara Lindqvist <mara@northwind.example>", "Invoice 2117 does not match the order", "invoices"],
  ["Tom Okafor <tom@okafor.example>", "Can you move Thursday’s delivery to Friday?", ""],
  ["Rail Tickets <no-reply@rail.example>", "Your booking RX-4471 is confirmed", "travel"],
  ["Grace Hopper <grace@example.org>", "Re: The eighth Bernoulli number", ""],
] as const

export const fill = async ({ base, smtpPort, receiver, mastodon }: ExampleAccount) => {
  const { session } = await signUp(base)
  const api = async (method: string, path: string, body?: unknown) => {
    const answer = await call(base, method, path, { token: session, ...(body === undefined ? {} : { body }) })
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  for (const handle of ["research-scout", "travel-desk"]) await makeIdentity(base, session, handle)
  await makeIdentity(base, session, "ada")
  await api("POST", "/api/identities/ada/identity-key/ack")
  await api("PATCH", "/api/identities/ada/card", {
    name: "Ada",
    description: "Answers questions about orders and invoices, and books what follows from them.",
    provider: { organization: "Northwind", url: "https://northwind.example" },
    skills: [
      {
        id: "invoices",
        name: "Invoices",
        description: "Compares an invoice with its order and says what differs.",
        tags: ["invoices", "orders"],
        examples: ["Does invoice 2117 match what we ordered?"],
      },
      { id: "delivery", name: "Deliveries", description: "Moves a delivery to another day.", tags: ["logistics"] },
    ],
  })
  await api("POST", "/api/identities/ada/webhooks", { url: receiver.well, event_types: ["email.received"] })
  await api("POST", "/api/identities/travel-desk/webhooks", { url: receiver.ill, event_types: ["*"] })
  for (const [from, subject, tag] of letters) {
    const to = `ada${tag === "" ? "" : `+${tag}`}@mail.localhost`
    await send(smtpPort, { from, to, subject, text: `Hello Ada,\n\n${subject}.\n\nThank you` })
  }
  await send(smtpPort, {
    from: letters[2][0],
    to: "travel-desk@mail.localhost",
    subject: letters[2][1],
    text: "Coach 7, seat 42.",
  })
  await eventually(
    () => api("GET", "/api/identities/ada/messages"),
    ({ messages }) => messages.length === letters.length,
  )
  for (const [name, description] of [
    ["erp.token", "Reads orders"],
    ["rail.account", "The booking site"],
  ]) {
    await api("PUT", `/api/vault/secrets/${name}`, { value: "not-a-real-secret", description })
  }
  await api("POST", "/api/keys", { name: "laptop" })
  const bot = mastodon.world.join("ada", "I answer for Northwind.")
  const start = await api("POST", "/api/identities/ada/connectors/mastodon/authorize", { account: mastodon.base })
  const callback = mastodon.allow(start.authorization_url, bot)
  await api("POST", "/api/connectors/callback", { callback, apply_disclosure: true })
  await api("POST", "/api/identities/ada/connectors/mastodon/posts", {
    text: "Invoices that arrive before noon are checked the same day.",
  })
  mastodon.world.publish(mastodon.world.join("tom@elsewhere.example"), "@ada how do I send you a corrected one?")
  return session
}
