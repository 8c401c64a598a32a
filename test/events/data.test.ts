/**
 * The data of Events, member by member, after the acts of one account. Tests of the capability compare the data of Events
 * that need time or other servers: ended keys, bounces, transfer, Connectors, failed Webhooks, failed provisioning, the log.
 */
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService } from "../harness/Service.ts"
import { authorizationUrl, browser, challengeOf, obtainTokens, registerClientId, verifierOf } from "../oauth/Consent.ts"

const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)

it("An Event says what happened, to what and by whom", async () => {
  const service = await startService({ env: { SVC_IDENTITY_QUOTA: "2" } })
  try {
    const { session } = await signUp(service.base)
    const told: Array<ReadonlyArray<unknown>> = []
    /** Expects an Event of an Identity (its Handle) or of the account (null). */
    const tells = (type: string, handle: string | null, data: object) => void told.push([type, handle, data])
    const ask = async (method: string, path: string, body?: unknown, token = session, wanted = 2) => {
      const answer = await call(service.base, method, path, { token, ...(body === undefined ? {} : { body }) })
      if (Math.floor(answer.status / 100) !== wanted) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
      return answer.body
    }
    const listed = async () => (await ask("GET", "/api/events?limit=200")).events.toReversed() as ReadonlyArray<any>
    /** Waits until background work has raised the Event. */
    const raised = (type: string) => eventually(listed, (events) => events.some((event) => event.type === type))

    const { handle, identity, secrets } = await makeIdentity(service.base, session)
    const at = `/api/identities/${handle}`
    const agent: string = secrets.identity_key
    const own = { scope: "identity", identity_id: identity.id, handle }
    tells("api_key.created", null, { key_id: uuid, name: handle, ...own })
    tells("identity.ready", handle, {})

    const friend = await makeIdentity(service.base, session)
    tells("limit.near", null, { limit: "identity_quota", used: 2, quota: 2, window: null })
    tells("api_key.created", null, { key_id: uuid, name: friend.handle, ...own, identity_id: friend.identity.id, handle: friend.handle }) // prettier-ignore
    tells("identity.ready", friend.handle, {})

    // Keys of the account and of an Identity.
    for (const [path, about] of [
      ["/api/keys", { scope: "org", identity_id: null, handle: null }],
      [`${at}/keys`, own],
    ] as const) {
      const { api_key: former } = await ask("POST", path, { name: "laptop" })
      const key = { name: "laptop", ...about }
      tells("api_key.created", null, { key_id: former.id, ...key })
      const { api_key: next } = await ask("POST", `/api/keys/${former.id}/rotate`, { overlap_seconds: 3600 })
      const { expires_at } = await ask("GET", `/api/keys/${former.id}`)
      expect(Math.abs(Date.parse(expires_at) - Date.now() - 3_600_000)).toBeLessThan(100_000)
      tells("api_key.created", null, { key_id: next.id, ...key })
      tells("api_key.rotated", null, { key_id: former.id, ...key, expires_at, replaced_by: next.id })
      await ask("DELETE", `/api/keys/${next.id}`)
      tells("api_key.revoked", null, { key_id: next.id, ...key })
    }

    await ask("PATCH", `${at}/card`, { description: "Computes." })
    tells("card.updated", handle, { changed: ["description"] })

    // Keys, tokens and sign-ins that prove who the agent is.
    const { did, keys: present } = await ask("GET", `${at}/signing-keys`)
    const { keys } = await ask("POST", `${at}/signing-key/rotate`)
    const signing = (of: ReadonlyArray<any>) => of.find(({ retired_at }) => retired_at === null).kid
    tells("proof.key_rotated", handle, { kid: signing(keys), replaces: signing(present) })
    for (const name of ["laptop", null]) {
      const { privateKey, publicKey } = await generateKeyPair("EdDSA")
      const proof = new SignJWT().setProtectedHeader({ alg: "EdDSA" }).setAudience(service.base).setSubject(did)
      const { kid } = await ask("POST", `${at}/signing-keys`, {
        jwk: await exportJWK(publicKey),
        proof: await proof.setIssuedAt().sign(privateKey),
        ...(name === null ? {} : { name }),
      })
      tells("proof.key_added", handle, { kid, name })
      await ask("DELETE", `${at}/signing-keys/${kid}`)
      tells("proof.key_removed", handle, { kid, name })
    }
    await ask("POST", `${at}/tokens`, { audience: "sts.amazonaws.com" }, agent, 4)
    tells("proof.token_refused", handle, { audience: "sts.amazonaws.com" })
    for (const [decision, type] of [
      ["approve", "identity.sign_in_approved"],
      ["refuse", "identity.sign_in_refused"],
    ] as const) {
      const redirect = `https://${decision}.example/callback`
      const client = await registerClientId(service.base, redirect)
      const about = { client, redirect, challenge: challengeOf(verifierOf()), more: { scope: "openid" } }
      const authorization_url = authorizationUrl(service.base, about)
      const { id, client_name } = await ask("POST", `${at}/sign-ins`, { authorization_url }, agent)
      const signIn = { sign_in_id: id, site: `${decision}.example`, client_name }
      tells("identity.sign_in_requested", handle, signIn)
      await ask("POST", `${at}/sign-ins/${id}/${decision}`)
      tells(type, handle, { ...signIn, by: "session" })
    }

    // Mail that arrives, is refused, awaits approval, and is sent.
    await send(service.smtpPort, {
      from: { name: "Grace", address: "grace@example.org" },
      to: [`${handle}+news@mail.localhost`, `${handle}+press@mail.localhost`],
      subject: "Greetings",
      text: "Hello there",
    })
    await raised("email.received")
    const [received] = (await ask("GET", `${at}/messages`)).messages
    const { id: email_id, subject, snippet, size, from, to, received_at, origin } = received
    expect([subject, snippet, from.address]).toEqual(["Greetings", "Hello there", "grace@example.org"])
    const tags = { tag: "news", tags: ["news", "press"] }
    tells("email.received", handle, { email_id, message_id: email_id, subject, snippet, size, from, to, ...tags, origin, received_at }) // prettier-ignore

    const [allowed, stranger] = [`${friend.handle}@mail.localhost`, "stranger@example.org"]
    await ask("POST", `${at}/allowed-recipients`, { address: allowed })
    await ask("POST", `${at}/messages/send`, { to: [stranger], subject: "No", text: "x" }, agent, 4)
    const recipients = [{ address: stranger, reason: "not_allowed" }]
    tells("email.recipient_blocked", handle, { subject: "No", recipients })
    await ask("PATCH", `${at}/mail`, { outgoing: "stopped", reason: "Looks odd" })
    tells("mail.stopped", handle, { by: "session", reason: "Looks odd" })
    await ask("PATCH", `${at}/mail`, { outgoing: "active" })
    tells("mail.started", handle, { by: "session", reason: null })

    await ask("PATCH", `${at}/mail`, { approval: "required" })
    const waiting = async (text: string) => {
      const mail = { to: [allowed], subject: text, text }
      const { id } = await ask("POST", `${at}/messages/send`, mail, agent)
      const found = await ask("GET", `${at}/approvals/${id}`)
      const { subject, snippet, size, to, cc, bcc, expires_at, content_sha256 } = found
      expect([subject, snippet.slice(0, text.length), cc, bcc]).toEqual([text, text, [], []])
      const summary = { email_id: id, message_id: id, subject, snippet, size, to, cc, bcc }
      tells("email.approval_requested", handle, { ...summary, expires_at })
      return { id, summary, content_sha256 }
    }
    const refused = await waiting("Refused")
    await ask("POST", `${at}/approvals/${refused.id}/refuse`, { reason: "Not now" })
    const both = { email_id: refused.id, message_id: refused.id }
    tells("email.approval_refused", handle, { ...both, by: "session", reason: "Not now" })
    const approved = await waiting("Approved")
    const { content_sha256 } = approved
    await ask("POST", `${at}/approvals/${approved.id}/approve`, { content_sha256 })
    tells("email.approved", handle, { email_id: approved.id, message_id: approved.id, by: "session", content_sha256 })
    const sent_at = expect.stringMatching(/^20.*Z$/)
    tells("email.sent", handle, { ...approved.summary, from: { name: null, address: `${handle}@mail.localhost` }, sent_at }) // prettier-ignore
    await raised("email.sent")

    // The access of an app.
    const client_id = await registerClientId(service.base, "http://127.0.0.1/callback")
    const person = browser(service.base, session)
    await obtainTokens(service.base, person, client_id, "http://127.0.0.1/callback", {}, ["card:read", "mail:read"])
    const [grant] = (await ask("GET", "/api/grants")).grants
    const { id: grant_id, expires_at } = grant
    const app = { grant_id, client_id, client_name: grant.client_name }
    const granted = { ...app, redirect_host: "127.0.0.1", scopes: grant.scopes, handles: [handle], networks: null, expires_at } // prettier-ignore
    tells("grant.created", null, granted)
    const change = { scopes: ["card:read"], networks: ["192.0.2.0/24"] }
    await ask("PATCH", `/api/grants/${grant_id}`, change)
    tells("grant.changed", null, { ...granted, scopes: ["card:read"], networks: ["192.0.2.0/24"] })
    await ask("DELETE", `/api/grants/${grant_id}`)
    tells("grant.revoked", null, { ...app, reason: "holder" })

    // One statement may raise Events of two types in any order. The friend's copy arrives at any time.
    const ofType = (events: ReadonlyArray<ReadonlyArray<any>>) =>
      events.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    const events = (await listed()).filter(({ handle: of, type }) => of !== friend.handle || type !== "email.received")
    expect(ofType(events.map(({ type, handle, data }) => [type, handle, data]))).toEqual(ofType(told))
    for (const { identity_id, handle: of } of events)
      expect(identity_id).toBe(of === null ? null : of === handle ? identity.id : friend.identity.id)

    // The Grant had ended before its only Identity was deleted.
    await ask("DELETE", at)
    await raised("identity.deleted")
    const left = (await listed()).filter(({ type }) => type === "grant.revoked" || type === "identity.deleted")
    expect(left.map(({ data }) => data)).toEqual([
      { ...app, reason: "holder" },
      { identity_id: identity.id, handle },
    ])
  } finally {
    await service.stop()
  }
})
