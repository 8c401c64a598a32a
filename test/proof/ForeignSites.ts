/** Sites and a store without sockets, for readers of keys: each address answers as the test says. */
import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { GuardedClient, RequestFailed } from "@svc/cluster/net/GuardedClient"
import type { BufferedResponse } from "@svc/cluster/net/BufferedResponse"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Addresses } from "@svc/domain/Addresses"
import { Unavailable } from "@svc/domain/problems/Problem"
import { calculateJwkThumbprint, type JWK } from "jose"
import { Effect, Layer } from "effect"
import { sealingLayer } from "../harness/Stores.ts"

/** The response of an address, the code of a failure, or no response. */
export type Answer = BufferedResponse | RequestFailed["error"] | "silence"

export interface AgentKey {
  readonly kid: string
  readonly jwk: JWK
  readonly key: KeyObject
  readonly privateKey: KeyObject
}

export const agentKey = async (): Promise<AgentKey> => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const jwk = publicKey.export({ format: "jwk" }) as JWK
  return { kid: await calculateJwkThumbprint(jwk), jwk, key: publicKey, privateKey }
}

export const ok = (json: unknown, headers: Readonly<Record<string, string>> = {}): BufferedResponse => ({
  status: 200,
  headers: new Headers({ "content-type": "application/json", ...headers }),
  body: Buffer.from(JSON.stringify(json)),
})

interface StoredIdentity {
  readonly handle: string
  readonly keys: ReadonlyArray<AgentKey & { readonly origin: "service" | "agent"; readonly retired_at: Date | null }>
}

export const foreignSites = () => {
  const asked: Array<string> = []
  const answers = new Map<string, () => Answer>()
  const store = { identities: new Map<string, StoredIdentity>(), isDown: false }
  let otherwise = (): Answer => ({ ...ok({}), status: 404 })

  const client = {
    ask: (url: URL, { atMost }: { readonly atMost: number }) =>
      Effect.suspend(() => {
        asked.push(url.href)
        const answer = (answers.get(url.href) ?? otherwise)()
        if (answer === "silence") return Effect.never
        const error = typeof answer === "string" ? answer : answer.body.length > atMost ? "too_large" : undefined
        if (error !== undefined) return Effect.fail(new RequestFailed({ error, durationMs: 1 }))
        return Effect.succeed(answer as BufferedResponse)
      }),
  }
  /** Answers the statements of `SigningKeys`: the Identity of a name, and its keys. */
  const sql = (parts: TemplateStringsArray, ...values: ReadonlyArray<unknown>) =>
    Effect.suspend((): Effect.Effect<ReadonlyArray<unknown>, Unavailable> => {
      if (store.isDown) return Effect.fail(new Unavailable({ detail: "The database did not respond in time." }))
      const text = parts.join("")
      if (text.includes("from identity where canonical")) {
        const found = store.identities.get(String(values[0]))
        return Effect.succeed(found === undefined ? [] : [{ id: values[0], handle: found.handle, org_id: "org" }])
      }
      const owner = values.find((value) => store.identities.has(String(value)))
      return Effect.succeed(store.identities.get(String(owner))?.keys ?? [])
    })

  const layer = Layer.mergeAll(
    Layer.succeed(GuardedClient, client as never),
    Layer.succeed(Reads, sql as never),
    Layer.succeed(Writes, sql as never),
    sealingLayer,
    Layer.succeed(Addresses, {
      environment: "production",
      baseUrl: "https://svc.example",
      profileBase: "https://svc.example",
      mailDomain: "mail.svc.example",
      tunnelDomain: "tunnel.example",
      tunnelScheme: "https",
      tunnelPort: undefined,
      mcpOrigins: [],
      imap: { host: "svc.example", port: 993, security: "tls" },
      submission: { host: "svc.example", port: 465, security: "tls" },
    }),
  )
  return {
    asked,
    store,
    layer,
    answer: (address: string) => (answer: () => Answer) => void answers.set(address, answer),
    otherwise: (answer: () => Answer) => void (otherwise = answer),
  }
}
