/** The pages around sign-in without a store: each test gives the outcomes of the services behind them. */
import * as Leave from "@svc/api/console/Leave"
import * as MailBody from "@svc/api/console/MailBody"
import * as Authorize from "@svc/api/oauth/Authorize"
import * as ConnectorPage from "@svc/api/pages/ConnectorPage"
import * as DevicePage from "@svc/api/pages/DevicePage"
import * as MagicLinkPage from "@svc/api/pages/MagicLinkPage"
import * as ProfilePage from "@svc/api/pages/ProfilePage"
import * as SignInPage from "@svc/api/pages/SignInPage"
import { Accounts } from "@svc/cluster/account/Accounts"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Devices } from "@svc/cluster/account/Devices"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Grants } from "@svc/cluster/oauth/Grants"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Addresses } from "@svc/domain/Addresses"
import * as Problem from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { afterAll } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example",
  profileBase: "https://id.example",
  mailDomain: "mail.id.example",
  tunnelDomain: "tunnel.id.example",
}
export const detail = "The reason."

export type Outcome = Effect.Effect<unknown, unknown>
/** The outcomes of the services behind the pages, which each test replaces. */
const outcomes: Record<string, Outcome> = {}
export const calls: Array<string> = []
const outcome = (name: string) =>
  Effect.suspend(() => {
    calls.push(name)
    return outcomes[name] ?? Effect.void
  }) as Effect.Effect<never>
export const holder = {
  kind: "session",
  credentialId: "c",
  keyName: null,
  grant: null,
  org: { id: "o", email: "ada@example.org", language: "en" },
}

const services = Layer.mergeAll(
  Layer.succeed(Addresses, book as never),
  Layer.succeed(Accounts, {
    registration: "closed",
    requestLink: () => outcome("link"),
    consume: () => outcome("consume"),
  } as never),
  Layer.succeed(SystemMailer, { send: () => outcome("mail") } as never),
  Layer.succeed(PublicLimits, { take: () => outcome("limit") } as never),
  Layer.succeed(OrgLimits, { take: () => outcome("calls") } as never),
  Layer.succeed(OAuthRequests, {
    isOf: () => outcome("request"),
    keep: () => outcome("keep"),
    open: () => outcome("open"),
    claim: () => outcome("claim"),
    close: () => outcome("close"),
  } as never),
  Layer.succeed(OAuthClients, { known: () => outcome("client"), read: () => outcome("document") } as never),
  Layer.succeed(Grants, { present: () => outcome("present"), consent: () => outcome("consent") } as never),
  Layer.succeed(IdentityQueries, { list: () => Effect.succeed({ entries: [] }) } as never),
  Layer.succeed(Audit, {
    record: ({ outcome: of }: Act) => outcome(`record ${of ?? "allowed"}`),
    secret: () => outcome("secret"),
  } as never),
  Layer.succeed(Devices, {
    view: () => outcome("view"),
    approve: () => outcome("approve"),
    deny: () => outcome("deny"),
  } as never),
  Layer.succeed(ConnectorQueries, {
    authorization: () => outcome("authorization"),
    read: () => outcome("connector"),
  } as never),
  Layer.succeed(Connectors, {
    of: () => ({ Finish: (payload: object) => outcome(`finish ${JSON.stringify(payload)}`) }),
  } as never),
  Layer.succeed(CardQueries, { profile: () => outcome("profile") } as never),
  Layer.succeed(MessageQueries, { read: () => outcome("read") } as never),
  Layer.succeed(AttachmentReader, {} as never),
  Layer.succeed(Sealing, {
    stamp: (_: string, text: string) => `seal:${text}`,
    unstamp: (_: string, text: string) => text.replace(/^seal:/, ""),
  } as never),
  Layer.succeed(CredentialLookup, {
    resolve: () => Effect.suspend(() => (outcomes["caller"] ?? Effect.succeed(holder)) as Effect.Effect<never>),
    resolveNaming: () => outcome("credential"),
  } as never),
)
const pages = Layer.mergeAll(
  SignInPage.layer,
  ...MagicLinkPage.layers,
  ConnectorPage.layer,
  DevicePage.layer,
  ProfilePage.layer,
  MailBody.layer,
  Leave.layer,
  Authorize.layer,
)
const { handler, dispose } = HttpRouter.toWebHandler(pages.pipe(Layer.provide(services)) as never, {
  disableLogger: true,
})
const context = Effect.runSync(Effect.scoped(Layer.build(services)))
afterAll(dispose)

export const fetched = async (
  path: string,
  set: Readonly<Record<string, Outcome>>,
  {
    form,
    headers = {},
  }: { readonly form?: Readonly<Record<string, string>>; readonly headers?: Record<string, string | undefined> } = {},
) => {
  for (const name of Object.keys(outcomes)) delete outcomes[name]
  const limit = { limit: { quota: 5, windowSeconds: 60 }, remaining: 4, resetSeconds: 60 }
  Object.assign(outcomes, { limit: Effect.succeed(limit) }, set)
  calls.length = 0
  const response: Response = await (handler as (request: Request, context: unknown) => Promise<Response>)(
    new Request(`https://id.example${path}`, {
      headers: Object.entries({
        origin: "https://id.example",
        cookie: "__Host-svc_session=t",
        ...headers,
      }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as [string, string]])),
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    }),
    context,
  )
  return { status: response.status, html: await response.text(), headers: response.headers }
}
export const refusal = (Refusal: new (given: { readonly detail: string }) => unknown) =>
  Effect.fail(new Refusal({ detail }))
export const unavailable = refusal(Problem.Unavailable)
export const limited = Effect.fail(new Problem.RateLimited({ detail, retry_after_seconds: 1 }))
