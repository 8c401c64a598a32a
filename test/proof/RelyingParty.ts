/** A site with "sign in", built on `openid-client`: a plain node server that knows the service by discovery only. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import * as oidc from "openid-client"
import { call } from "../harness/Client.ts"

/** The visitor as the site knows it after the sign-in, or the reason why the sign-in failed. */
export interface Visitor {
  readonly claims?: oidc.IDToken
  readonly userinfo?: oidc.UserInfoResponse
  readonly access?: string
  readonly error?: string
}

interface SiteOptions {
  /** `document`: its client id is the address of its metadata document. */
  readonly clientBy: "document" | "registration"
  readonly metadata?: Partial<oidc.ClientMetadata>
}

const insecure = { execute: [oidc.allowInsecureRequests] }

export const startRelyingParty = async (issuer: string, { clientBy, metadata = {} }: SiteOptions) => {
  const waiting = new Map<string, { readonly verifier: string; readonly nonce: string }>()
  let config: oidc.Configuration | undefined
  let fetched: typeof fetch | undefined
  const scope = "openid email profile"

  const login = async () => {
    const verifier = oidc.randomPKCECodeVerifier()
    const [state, nonce] = [oidc.randomState(), oidc.randomNonce()]
    waiting.set(state, { verifier, nonce })
    return oidc.buildAuthorizationUrl(config!, {
      redirect_uri: `${base}/callback`,
      scope,
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    })
  }

  const callback = async (url: URL): Promise<Visitor> => {
    const state = url.searchParams.get("state") ?? ""
    const expected = waiting.get(state)
    if (expected === undefined) return { error: "unknown state" }
    try {
      const tokens = await oidc.authorizationCodeGrant(config!, url, {
        pkceCodeVerifier: expected.verifier,
        expectedState: state,
        expectedNonce: expected.nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()!
      const userinfo = await oidc.fetchUserInfo(config!, tokens.access_token, claims.sub)
      return { claims, userinfo, access: tokens.access_token }
    } catch (error) {
      const { code, message } = error as { readonly code?: string; readonly message: string }
      return { error: `${(error as { readonly error?: string }).error ?? code ?? message}` }
    }
  }

  const answer = async ({ url = "/" }: IncomingMessage) => {
    if (url === "/client.json") return { client_id: `${base}/client.json`, ...details, ...metadata }
    if (url.startsWith("/callback")) return callback(new URL(url, base))
    return undefined
  }
  const server = createServer((request, response) => {
    void answer(request).then((body) =>
      response
        .writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" })
        .end(JSON.stringify(body)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const details = {
    client_name: "Shop",
    redirect_uris: [`${base}/callback`],
    token_endpoint_auth_method: "none",
    scope,
  }
  config =
    clientBy === "document"
      ? await oidc.discovery(new URL(issuer), `${base}/client.json`, metadata, undefined, insecure)
      : await oidc.dynamicClientRegistration(new URL(issuer), { ...details, ...metadata }, undefined, insecure)

  return {
    base,
    site: "127.0.0.1",
    clientId: config.clientMetadata().client_id,
    /** Starts a sign-in: returns the address to which the site redirects its visitor. */
    login,
    /** The verifier of a sign-in that the site started. */
    verifierOf: (url: URL) => waiting.get(url.searchParams.get("state") ?? "")!.verifier,
    /** Verifies signatures of ID tokens from the token endpoint too, for which TLS vouches otherwise. */
    verifySignatures: () => oidc.enableNonRepudiationChecks(config!),
    /** Replaces how the site reaches the service, to alter what it receives. */
    reachBy: (next: typeof fetch | undefined) => {
      fetched = next
      config![oidc.customFetch] = (url, options) => (fetched ?? fetch)(url, options as RequestInit)
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export type RelyingParty = Awaited<ReturnType<typeof startRelyingParty>>

/** Posts the request of a site as the agent. */
export const postSignIn = (base: string, handle: string, token: string, url: URL | string) =>
  call(base, "POST", `/api/identities/${handle}/sign-ins`, { token, body: { authorization_url: String(url) } })

/** Opens the address of the site with the code, as the agent. */
export const open = async (redirect: string): Promise<Visitor> => (await fetch(redirect)).json() as Promise<Visitor>
