/**
 * The client of the Agent Identity Service for Node 20 and later, Deno, Bun, browsers and edge runtimes, without
 * dependencies.
 *
 * ```ts
 * import { createClient } from "@agent-identity/sdk"
 *
 * const client = createClient({ key: process.env.SVC_KEY, baseUrl: "https://api.example.org" })
 * const ada = await client.createIdentity("ada")
 * const message = await ada.waitForMessage({ from: "grace@example.org" })
 * if (message !== undefined) await ada.reply(message, { text: "Thank you!" })
 * ```
 */
export { type Api, type Client, createClient, type Identity, type IdentityApi, type WaitOptions } from "./Client.ts"
export {
  type AgentHint,
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  InvalidSignature,
  NotFoundError,
  PermissionDeniedError,
  type Problem,
  RateLimitError,
  ServiceError,
} from "./Errors.ts"
export type { EventStreamOptions } from "./Events.ts"
export { login, type LoginOptions } from "./Login.ts"
export type { Attempt, CallOptions, ClientOptions } from "./Transport.ts"
export type { ConnectTunnel, OpenTunnel, TunnelHandler, TunnelOptions } from "./Tunnel.ts"
export { type Delivery, signWebhook, verifyWebhook } from "./Webhook.ts"
export { apiVersion } from "./generated.ts"
export type * from "./generated.ts"
