/** An Identity that sends mail through the whole service, and a receiving mail server. */
import type { Parts } from "@svc/cli/serve/Parts"
import { Effect, Scope } from "effect"
import type { SMTPServerOptions } from "smtp-server"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { closeScope } from "../../harness/Database.ts"
import { startService } from "../../harness/Service.ts"
import { type Sink, sink } from "./Sinks.ts"

/** A relay, and a service that sends through it. */
export const startOutbound = async (
  options: {
    readonly relay?: SMTPServerOptions
    readonly env?: Readonly<Record<string, string>>
    readonly parts?: Partial<Parts>
  } = {},
) => {
  const scope = Scope.makeUnsafe()
  const relay = await Effect.runPromise(Effect.provideService(sink(options.relay), Scope.Scope, scope))
  const service = await startService({
    env: { SVC_SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`, SVC_LIMIT_MAIL_HOURLY: "100000", ...options.env },
    ...(options.parts === undefined ? {} : { parts: options.parts }),
  })
  return {
    ...service,
    relay: relay satisfies Sink,
    stop: async () => {
      await service.stop()
      await closeScope(scope)
    },
  }
}

/** Creates an Identity that may write to these addresses. */
export const writer = async (base: string, allowed: ReadonlyArray<string>) => {
  const owner = await signUp(base)
  const { handle, secrets } = await makeIdentity(base, owner.session)
  const token = owner.session
  for (const address of allowed) {
    await call(base, "POST", `/api/identities/${handle}/allowed-recipients`, { token, body: { address } })
  }
  const at = (path: string) => `/api/identities/${handle}${path}`
  return {
    handle,
    token,
    key: secrets.identity_key as string,
    send: (body: object) => call(base, "POST", at("/messages/send"), { token, body }),
    read: (id: string) => call(base, "GET", at(`/messages/${id}`), { token }),
    list: () => call(base, "GET", at("/messages"), { token }),
    allowed: () => call(base, "GET", at("/allowed-recipients"), { token }),
    events: async (type: string) =>
      (await call(base, "GET", `/api/events?handle=${handle}&type=${type}`, { token })).body.events as ReadonlyArray<{
        data: any
      }>,
  }
}
