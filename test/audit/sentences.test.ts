/** Sentences that describe audit records to people. */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { planOf } from "@svc/api/audit/AuditedOperations"
import { Api } from "@svc/domain/Api"
import { auditSentence, groups, phrases, type DescribedRecord } from "@svc/domain/audit/AuditSentences"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { root } from "../house/Imports.ts"

const languages = ["en", "de", "fr"] as const
const record = (part: Partial<DescribedRecord>): DescribedRecord => ({
  action: "api_keys.revoke",
  actor: { kind: "admin_key", name: "Grace", client: null },
  identity: null,
  target: { type: "api_key", name: "laptop" },
  outcome: "allowed",
  count: 1,
  ...part,
})
const inAll = (part: Partial<DescribedRecord>) => languages.map((language) => auditSentence(language, record(part)))

describe("an audit sentence", () => {
  it("names the actor, the action and the target", () => {
    expect(inAll({})).toEqual([
      "Grace revoked the key 'laptop'",
      "Grace hat den Schlüssel „laptop“ widerrufen",
      "Grace a révoqué la clé «\u00a0laptop\u00a0»",
    ])
  })

  it("names the Identity unless it is the actor", () => {
    const target = { type: "card", name: "ada" }
    expect(inAll({ action: "cards.patch", identity: "ada", target })).toEqual([
      "Grace changed the card of ada",
      "Grace hat die Karte von ada geändert",
      "Grace a modifié la carte d’ada",
    ])
    const actor = { kind: "identity_key", name: "ada", client: null }
    expect(inAll({ action: "cards.patch", identity: "ada", target, actor })[0]).toBe("ada changed the card")
  })

  it("marks rejected and failed operations as attempts", () => {
    expect(inAll({ outcome: "refused", count: 3 })).toEqual([
      "Grace tried to revoke the key 'laptop': refused × 3",
      "Grace wollte den Schlüssel „laptop“ widerrufen: verweigert × 3",
      "Grace a voulu révoquer la clé «\u00a0laptop\u00a0»\u00a0: refusé × 3",
    ])
    expect(inAll({ outcome: "failed" })[0]).toBe("Grace tried to revoke the key 'laptop': failed")
    expect(inAll({ outcome: "repeated" })[0]).toBe("Grace revoked the key 'laptop' (repeated request)")
    // A rejected read is recorded.
    expect(inAll({ action: "messages.read", identity: "ada", target: null, outcome: "refused" })[0]).toBe(
      "Grace tried to view a message of ada: refused",
    )
  })

  it("uses the kind of an unnamed actor, and the name of an app", () => {
    const target = null
    const session = { kind: "session", name: null, client: null }
    expect(inAll({ action: "sign_in.consumeMagicLink", actor: session, target })).toEqual([
      "The account holder signed in",
      "Der Kontoinhaber hat sich angemeldet",
      "Le titulaire du compte s’est connecté",
    ])
    const grant = { kind: "grant", name: null, client: "Claude" }
    const service = { kind: "nobody", name: null, client: null }
    expect(inAll({ action: "audit.bridge", actor: service, target })[0]).toBe(
      "The service closed the audit log of an earlier version",
    )
    expect(inAll({ action: "sending.send", actor: grant, identity: "ada", target })[0]).toBe(
      "Claude sent a message of ada",
    )
  })

  it("names the app rather than its credential, and counts repetitions from two on", () => {
    const actor = { kind: "grant", name: "key of ada", client: "Claude" }
    expect(inAll({ actor, count: 2 })[0]).toBe("Claude revoked the key 'laptop' × 2")
  })

  it("of an action differs from those of all actions that do something else", () => {
    const same: ReadonlyArray<ReadonlyArray<string>> = [
      ["sign_in.consumeMagicLink", "oauth.token"],
      ["audit.list", "audit.read"],
      ["api_keys.create", "api_keys.createForIdentity"],
      ["sending.send", "submission.send"],
      ["connectors.connect", "connectors.authorize", "connectors.callback"],
      ["grants.revoke", "oauth.revoke"],
    ]
    const actions = new Map<string, ReadonlyArray<string>>()
    for (const [action, phrase] of Object.entries(phrases)) {
      const name = phrase.join(" ")
      actions.set(name, [...(actions.get(name) ?? []), action])
    }
    expect([...actions.values()].filter(({ length }) => length > 1)).toEqual(same)
    for (const language of languages) {
      const sentences = [...actions.values()].map(([action]) =>
        auditSentence(language, record({ action: action!, identity: "ada" })),
      )
      expect(sentences.filter((one, at) => sentences.indexOf(one) !== at)).toEqual([])
    }
  })

  it("uses the kind of an unnamed target", () => {
    expect(inAll({ action: "api_keys.create", target: null })).toEqual([
      "Grace created a key",
      "Grace hat einen Schlüssel erstellt",
      "Grace a créé une clé",
    ])
  })

  it("covers every audited action and group", () => {
    // Actions that are recorded outside the endpoints of the API.
    const sources = globSync("packages/{api,cluster,mail-gateway,tunnel-edge}/src/**/*.ts", { cwd: root })
    const texts = sources.map((file) => readFileSync(path.join(root, file), "utf8")).join("")
    for (const [, action] of texts.matchAll(/action: "(\w+\.\w+)"/g)) expect(phrases, action).toHaveProperty([action!])
    for (const [name, group] of Object.entries(Api.groups)) {
      for (const endpoint of Object.values(group.endpoints)) {
        const plan = planOf({ endpoint: endpoint as never, group })
        if (plan.class !== "read") expect(phrases, plan.action).toHaveProperty([plan.action])
      }
      if (name !== "health") expect(groups, name).toHaveProperty([name])
    }
    for (const action of Object.keys(phrases)) {
      for (const outcome of ["allowed", "refused"]) {
        for (const sentence of inAll({ action, outcome, identity: "ada" })) {
          expect(sentence, action).toMatch(/^Grace \S.*\S$/)
          expect(sentence, action).not.toMatch(/[{}]| {2}|undefined/)
        }
      }
    }
  })

  it("has no preposition without a name", () => {
    const dangling =
      /\s(?:on|at|for|of|bei|für|von|à|sur|pour|de)(?:$|\s(?:of|von|de|d’)|\u00a0|:|\s(?:an|ver|er|ab|ge|frei)\w+$)/
    for (const action of Object.keys(phrases))
      for (const target of [null, { type: "x", name: null }, { type: "x", name: "ada" }])
        for (const outcome of ["allowed", "refused"])
          for (const sentence of inAll({ action, outcome, identity: "ada", target }))
            expect(sentence, action).not.toMatch(dangling)
  })

  it("has no words of another language", () => {
    const words = [
      /\b(?:the|an|of|to|by|on|for|at|its|all|again|sent|reset)\b/i,
      /\b(?:der|die|das|den|eine?n?|bei|für|von|hat|seinen|alle|Nachrichten)\b/i,
      /\b(?:le|la|les|une?|du|sur|pour|son|des messages)\b|[ld]’/i,
    ]
    const starts = [/^(?:An?|The|Somebody) /, /^(?:Eine?|Der|Jemand) /, /^(?:Une?|Le) /]
    // A German participle or infinitive is the last word. A French infinitive follows "a voulu".
    const ends = {
      allowed: [/ [a-z]+/, / hat .*[nt]$/, / (?:a|s’est) /],
      repeated: [/ \(repeated request\)$/, / hat .*[nt] \(wiederholte Anfrage\)$/, / \(requête répétée\)$/],
      refused: [
        / tried to (?!\S+[ei]r\b).*: refused$/,
        / wollte .*n: verweigert$/,
        / a voulu (?:se )?\S+(?:er|re|ir)\b.*: refusé$/,
      ],
      failed: [/ tried to .*: failed$/, / wollte .*n: fehlgeschlagen$/, / a voulu .*: échec$/],
    }
    // A rejected read is described by its group.
    const actions = [...Object.keys(phrases), ...Object.keys(groups).map((group) => `${group}.any`)]
    const kinds = ["session", "admin_key", "identity_key", "grant", "imap_password", "nobody", "service"]
    actions.forEach((action, index) => {
      const actor = { kind: kinds[index % kinds.length]!, name: null, client: null }
      for (const target of [null, { type: "x", name: "bob" }])
        for (const outcome of ["allowed", "repeated", "refused", "failed"] as const)
          inAll({ action, actor, outcome, identity: "ada", target }).forEach((sentence, language) => {
            for (const form of [starts, ends[outcome]]) expect(sentence, action).toMatch(form[language]!)
            words.forEach((own, other) => other === language || expect(sentence, action).not.toMatch(own))
          })
    })
  })

  it("shows an unknown action by its name", () => {
    expect(inAll({ action: "future.thing" })[0]).toBe("Grace: future.thing")
  })

  it("keeps untrusted names on one line, bounded and isolated in direction", () => {
    const name = `a\n\u202eb\u2069${"c".repeat(500)}`
    const [sentence] = inAll({ target: { type: "api_key", name } })
    expect(sentence).toMatch(/^Grace revoked the key 'a b c+…'$/)
    expect(sentence!.length).toBeLessThan(160)
    expect(auditSentence("en", record({}), (value) => `<${value}>`)).toBe("<Grace> revoked the key <'laptop'>")
  })
})

describe("a record of the log", () => {
  let service: TestService
  beforeAll(async () => void (service = await sharedService()))

  it("contains the name of a revoked key", async () => {
    const { session } = await signUp(service.base)
    const made = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "laptop" } })
    await call(service.base, "DELETE", `/api/keys/${made.body.api_key.id}`, { token: session })
    const { records } = await eventually(
      async () => (await call(service.base, "GET", "/api/audit?action=api_keys.revoke", { token: session })).body,
      ({ records }) => records.length > 0,
    )
    expect(records[0].target).toEqual({ type: "api_key", id: made.body.api_key.id, name: "laptop" })
    expect(auditSentence("en", records[0])).toBe("The account holder revoked the key 'laptop'")
    const { body } = await call(service.base, "GET", `/api/audit/${records[0].id}`, { token: session })
    expect(body.target.name).toBe("laptop")
  })

  it("names the Identity that was created, or whose key was created, rotated or revoked", async () => {
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const api = (method: string, path: string, body?: object) =>
      call(service.base, method, path, { token: session, ...(body === undefined ? {} : { body }) })
    const made = (await api("POST", `/api/identities/${handle}/keys`, { name: "laptop" })).body.api_key
    const other = (await api("POST", "/api/keys", { name: "admin" })).body.api_key
    await api("POST", `/api/keys/${made.id}/rotate`)
    for (const { id } of [made, other]) await api("DELETE", `/api/keys/${id}`)
    const { records } = (await api("GET", `/api/audit?identity=${handle}&class=auth`)).body
    expect(records.map((one: DescribedRecord) => auditSentence("en", one))).toEqual([
      `The account holder revoked the key 'laptop' of ${handle}`,
    ])
    const all = (await api("GET", `/api/audit?identity=${handle}`)).body.records.map(({ action }: any) => action)
    expect(all.toReversed()).toEqual([
      "identities.create",
      "identities.secrets",
      "api_keys.createForIdentity",
      "api_keys.rotate",
      "api_keys.revoke",
    ])
  })
})
