/** Vault secrets, Webhooks, API keys, the card and Allowed Recipients of a caller. */
import { type Caller, createdId, type Resources } from "./Caller.ts"

const secrets = (caller: Caller): Resources => {
  const known = new Map<string, string>()
  const pathOf = (name: string) => `/api/vault/secrets/${name}`
  const anyName = () => `cut.${caller.handle}.${caller.draw(4)}`
  const compareValue = async (name: string, value: string) => {
    const { body } = await caller.read(`${pathOf(name)}/value`)
    caller.findings.same(`the value of ${name}`, [body.value], [value])
  }

  const put = async () => {
    const name = anyName()
    const value = caller.text("value")
    const path = pathOf(name)
    const seen = known.has(name) ? { asSeenAt: `${path}/value` } : {}
    const change = {
      action: "vault.put",
      method: "PUT",
      path,
      body: { value },
      tool: ["svc_vault_set", { name }],
    } as const
    if ((await caller.change({ ...change, ...seen })) === undefined) return
    known.set(name, value)
    await compareValue(name, value)
  }

  const remove = async () => {
    const name = anyName()
    const path = pathOf(name)
    const seen = known.has(name) ? { asSeenAt: `${path}/value` } : { refusal: 404 }
    const tool = ["svc_vault_delete", { name }] as const
    await caller.change({ action: "vault.remove", method: "DELETE", path, tool, ...seen })
    known.delete(name)
  }

  return {
    operations: [put, put, remove, remove],
    compare: async () => {
      const listed = await caller.client.list("/api/vault/secrets", "secrets")
      const names = listed.map(({ name }) => name as string).filter((name) => name.startsWith(`cut.${caller.handle}.`))
      caller.findings.same(`secrets of ${caller.handle}`, names, known.keys())
      for (const [name, value] of known) await compareValue(name, value)
    },
  }
}

const webhooks = (caller: Caller): Resources => {
  const known = new Map<string, string>()
  const path = `${caller.own}/webhooks`

  const create = async () => {
    const description = caller.text("Webhook")
    const body = { url: "http://127.0.0.1:9/", event_types: ["email.bounced"], description }
    const tool = ["svc_webhook_create", { handle: caller.handle }, "write"] as const
    const made = await caller.change({ action: "webhooks.create", method: "POST", path, body, tool, repeatedAs: 409 })
    if (made !== undefined) known.set(createdId(made), description)
  }

  const change = async () => {
    const id = caller.pick(known.keys())
    if (id === undefined) return create()
    const description = caller.text("Webhook")
    const at = `${path}/${id}`
    await caller.change({ action: "webhooks.patch", method: "PATCH", path: at, body: { description }, asSeenAt: at })
    known.set(id, description)
  }

  const remove = async () => {
    const id = caller.pick(known.keys())
    if (id === undefined) return create()
    const at = `${path}/${id}`
    const tool = ["svc_webhook_delete", { handle: caller.handle, id }] as const
    await caller.change({ action: "webhooks.remove", method: "DELETE", path: at, asSeenAt: at, tool })
    known.delete(id)
  }

  return {
    operations: [create, change, remove],
    compare: async () => {
      const listed = await caller.client.list(path, "webhooks")
      const found = listed.filter(({ event_types }) => event_types[0] !== "*")
      caller.findings.same(
        `Webhooks of ${caller.handle}`,
        found.map(({ id, description }) => `${id} ${description}`),
        [...known].map(([id, description]) => `${id} ${description}`),
      )
    },
  }
}

const keys = (caller: Caller): Resources => {
  /** Active and revoked keys with their secrets; undefined if the answer that contained the secret was lost. */
  const active = new Map<string, string | undefined>()
  const revoked: Array<string> = []

  const create = async () => {
    const made = await caller.change({
      action: "api_keys.createForIdentity",
      raises: ["api_key.created"],
      method: "POST",
      path: `${caller.own}/keys`,
      body: { name: caller.text("key") },
      repeatedAs: 409,
    })
    if (made !== undefined) active.set(createdId(made), made.body.key)
  }

  const revoke = async () => {
    const id = caller.pick(active.keys())
    if (id === undefined) return create()
    const path = `/api/keys/${id}`
    await caller.change({
      action: "api_keys.revoke",
      raises: ["api_key.revoked"],
      method: "DELETE",
      path,
      asSeenAt: path,
    })
    const secret = active.get(id)
    active.delete(id)
    if (secret === undefined) return
    revoked.push(secret)
    await compareUse(secret, 401)
  }

  const compareUse = async (token: string, wanted: number) => {
    const { status } = await caller.client.ask({ method: "GET", path: "/api/auth/whoami", token })
    caller.findings.same(`use of a key of ${caller.handle}`, [String(status)], [String(wanted)])
  }

  return {
    operations: [create, revoke, revoke],
    compare: async () => {
      const listed = await caller.client.list("/api/keys", "api_keys")
      const names = listed.filter(({ name }) => name.startsWith("key ") && name.endsWith(` of ${caller.handle}`))
      caller.findings.same(
        `keys of ${caller.handle}`,
        names.map(({ id }) => id),
        active.keys(),
      )
      for (const secret of active.values()) if (secret !== undefined) await compareUse(secret, 200)
      for (const secret of revoked) await compareUse(secret, 401)
    },
  }
}

const card = (caller: Caller): Resources => {
  const path = `${caller.own}/card`
  let known: string | undefined

  const change = async () => {
    known = caller.text("card")
    const body = { description: known }
    await caller.change({
      action: "cards.patch",
      raises: ["card.updated"],
      method: "PATCH",
      path,
      body,
      asSeenAt: path,
      tool: ["svc_card_update", { handle: caller.handle }],
    })
  }

  return {
    operations: [change],
    compare: async () => {
      const { body } = await caller.read(path)
      if (known !== undefined) caller.findings.same(`card of ${caller.handle}`, [body.description], [known])
    },
  }
}

const recipients = (caller: Caller): Resources => {
  const known = new Set<string>()
  const path = `${caller.own}/allowed-recipients`

  const change = async () => {
    const address = `friend${caller.draw(6)}@example.org`
    const isKnown = known.has(address)
    if (caller.draw(2) === 0) {
      await caller.change({ action: "mail_settings.allow", method: "POST", path, body: { address } })
      known.add(address)
    } else {
      const refused = isKnown ? {} : { refusal: 404 }
      await caller.change({
        action: "mail_settings.disallow",
        method: "DELETE",
        path: `${path}/${address}`,
        ...refused,
      })
      known.delete(address)
    }
  }

  return {
    operations: [change],
    compare: async () => {
      const listed = await caller.client.list(path, "allowed_recipients")
      const found = listed.map(({ address }) => address as string).filter((address) => address.startsWith("friend"))
      caller.findings.same(`Allowed Recipients of ${caller.handle}`, found, known)
    },
  }
}

export const settings = [secrets, webhooks, keys, card, recipients]
