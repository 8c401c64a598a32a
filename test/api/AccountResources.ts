/** One of every resource that an account can own, and the paths that name each. */
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { toPublic } from "@svc/domain/Ids"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { authorizationUrl, challengeOf, registerClient, verifierOf } from "../oauth/Consent.ts"
import { eventually, type TestService } from "../harness/Service.ts"
import type { Operation } from "./Operations.ts"

/** The names of a resource in a path, a query or a body of a request. */
export interface Names {
  readonly handle: string
  /** Ids by endpoint group, or by `group.endpoint` if the endpoints of a group need different kinds of ids. */
  readonly ids: Readonly<Record<string, string>>
  readonly delivery_id: string
  readonly address: string
  /** A registered public key. */
  readonly kid: string
  readonly name: string
}

export interface AccountResources extends Names {
  readonly email: string
  readonly session: string
  readonly adminKey: string
  readonly identityKey: string
}

const uuid = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"

/** Well-formed names of resources that do not exist. */
export const unknownNames: Names = {
  handle: newHandle("nobody"),
  ids: {
    messages: toPublic("msg_", uuid),
    threads: toPublic("thr_", uuid),
    "sending.draft": toPublic("msg_", uuid),
    "sending.approval": toPublic("msg_", uuid),
    webhooks: toPublic("wh_", uuid),
    events: toPublic("evt_", uuid),
    exports: toPublic("exp_", uuid),
    audit: toPublic("aud_", uuid),
    api_keys: uuid,
    agent_sign_ins: uuid,
    grants: uuid,
    session: uuid,
  },
  delivery_id: toPublic("dlv_", uuid),
  kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
  address: "nobody@example.net",
  name: "no.such.secret",
}

const kindOf = ({ id }: Operation): string => {
  const [group, name = ""] = id.split(".")
  if (group !== "sending") return group!
  return /draft/i.test(name) ? "sending.draft" : "sending.approval"
}

/** Returns the path of an operation on these resources; throws if there is no resource for the operation. */
export const pathTo = (operation: Operation, { handle, ids, delivery_id, address, kid, name }: Names): string =>
  operation.path.replace(/:(\w+)/g, (_, member: string) => {
    const text = {
      handle,
      delivery_id,
      address,
      kid,
      name,
      index: "0",
      platform: "mastodon",
      id: ids[kindOf(operation)],
    }[member]
    if (text === undefined) throw new Error(`${operation.id}: nothing is made for :${member}`)
    return encodeURIComponent(text)
  })

/** Creates an Identity with one of every resource, and the resources of the account itself. */
export const createResources = async (
  service: TestService,
  account: { readonly email: string; readonly session: string; readonly org: { readonly id: string } },
): Promise<AccountResources> => {
  const token = account.session
  const { handle, identity, secrets } = await makeIdentity(service.base, token)
  const at = `/api/identities/${handle}`
  const ask = async (method: string, path: string, body?: unknown, as = token) => {
    const answer = await call(service.base, method, path, { token: as, ...(body === undefined ? {} : { body }) })
    if (answer.status >= 400) throw new Error(`${method} ${path} answered ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const identityKey: string = secrets.identity_key

  await send(service.smtpPort, {
    from: "grace@example.org",
    to: `${handle}@mail.localhost`,
    subject: `A secret of ${handle}`,
    text: `The word is ${handle}.`,
    attachments: [{ filename: "plan.txt", content: `The plan of ${handle}.` }],
  })
  const listed = await eventually(
    () => call(service.base, "GET", `${at}/messages`, { token }),
    ({ body }) => body.messages.length === 1,
  )
  const [message] = listed.body.messages
  const address = `friend-of-${handle}@example.org`
  await ask("POST", `${at}/allowed-recipients`, { address })
  const draft = await ask("POST", `${at}/drafts`, { to: [address], subject: "Later", text: "x" })
  await ask("PATCH", `${at}/mail`, { approval: "required" })
  const waiting = await ask("POST", `${at}/messages/send`, { to: [address], subject: "May I?", text: "x" }, identityKey)
  // The delivery fails and stays in the log, because no server listens at this address.
  const webhook = await ask("POST", `${at}/webhooks`, { url: "http://127.0.0.1:9/", event_types: ["card.updated"] })
  const { delivery } = await ask("POST", `${at}/webhooks/${webhook.id}/test`)
  const made = await ask("POST", "/api/exports", { identity: handle })
  const { api_key, key } = await ask("POST", "/api/keys", { name: "laptop" })
  const name = `secret.of.${handle.toLowerCase()}`
  await ask("PUT", `/api/vault/secrets/${name}?identity=${handle}`, { value: "v", description: "d" })
  await ask("PUT", `/api/vault/secrets/${name}`, { value: "v", description: "d" })
  const { did } = await ask("GET", `${at}/signing-keys`)
  const { privateKey, publicKey } = await generateKeyPair("EdDSA")
  const proof = new SignJWT().setProtectedHeader({ alg: "EdDSA" }).setAudience(service.base).setSubject(did)
  const signing = { jwk: await exportJWK(publicKey), proof: await proof.setIssuedAt().sign(privateKey) }
  const { kid } = await ask("POST", `${at}/signing-keys`, signing)
  const redirect = `https://shop.example/${handle}`
  const { body: client } = await registerClient(service.base, [redirect], "Shop")
  const site = {
    client: client["client_id"],
    redirect,
    challenge: challengeOf(verifierOf()),
    more: { scope: "openid" },
  }
  const signIn = await ask(
    "POST",
    `${at}/sign-ins`,
    { authorization_url: authorizationUrl(service.base, site) },
    identityKey,
  )
  const [grant] = await service.query<{ id: string }>(
    (sql) => sql`
      insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
      values (uuidv7(), ${account.org.id}, ${`oc_${handle}`}, 'An app', 'localhost', ''::bytea, '', '{mail:read}', now(), now() + interval '1 day')
      returning id`,
  )
  await service.query(
    (sql) => sql`
      insert into connector (identity_id, platform, canonical, org_id, connection_id, status, account, account_id, service,
        connected_via, capabilities, disclosed, declared, credential, poll_wait_millis, created_at, updated_at)
      select id, 'mastodon', canonical, org_id, uuidv7(), 'stopped', 'ada@example.social', '1', 'https://example.social',
        'oauth', '{post}', false, false, ''::bytea, 60000, now(), now()
      from identity where id = ${identity.id}`,
  )
  const { events } = await eventually(
    async () => ask("GET", `/api/events?handle=${handle}&type=email.received`),
    ({ events }) => events.length === 1,
  )
  const { sessions } = await ask("GET", "/api/auth/sessions")
  const { records } = await eventually(
    async () => ask("GET", `/api/audit?identity=${handle}`),
    ({ records }) => records.length > 0,
  )
  return {
    email: account.email,
    session: token,
    adminKey: key,
    identityKey,
    handle,
    ids: {
      messages: message.id,
      threads: message.thread_id,
      "sending.draft": draft.id,
      "sending.approval": waiting.id,
      webhooks: webhook.id,
      events: events[0].id,
      exports: made.id,
      audit: records[0].id,
      api_keys: api_key.id,
      agent_sign_ins: signIn.id,
      grants: grant!.id,
      session: sessions[0].id,
    },
    delivery_id: delivery.id,
    address,
    kid,
    name,
  }
}

/** Creates an account with {@link createResources}. */
export const createAccount = async (service: TestService) => createResources(service, await signUp(service.base))
