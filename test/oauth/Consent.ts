/** A simulated browser user: cookies, forms, and forwarding pages. */
import { grantable } from "@svc/api/oauth/OfferedScopes"
import { createHash, randomBytes } from "node:crypto"
import { makeIdentity, newHandle, signUp } from "../harness/Client.ts"

export interface PageResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const unescape = (text: string) =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

/** Returns the address to which a page forwards. */
export const redirectOf = ({ text }: PageResponse): URL => {
  const to = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(text)?.[1]
  if (to === undefined)
    throw new Error(`the page leads nowhere: ${text.replace(/<style>.*<\/style>/s, "").slice(0, 2000)}`)
  return new URL(unescape(to))
}

const hidden = (text: string, name: string) => {
  const value = new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1]
  if (value === undefined)
    throw new Error(`the page has no ${name}: ${text.replace(/<style>.*<\/style>/s, "").slice(0, 2000)}`)
  return unescape(value)
}

export const verifierOf = () => randomBytes(32).toString("base64url")
export const challengeOf = (verifier: string) => createHash("sha256").update(verifier).digest("base64url")

/** Returns a browser, which is signed in if a session is given. */
export const browser = (base: string, session?: string) => {
  const jar = new Map<string, string>(session === undefined ? [] : [["svc_session", session]])

  const go = async (
    path: string | URL,
    options: {
      readonly form?: Record<string, string | ReadonlyArray<string>>
      readonly headers?: Record<string, string>
    } = {},
  ): Promise<PageResponse> => {
    const headers: Record<string, string> = {
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
      ...(options.form === undefined ? {} : { origin: base }),
      ...options.headers,
    }
    for (const [name, value] of Object.entries(headers)) if (value === "") delete headers[name]
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(options.form ?? {})) {
      for (const one of typeof value === "string" ? [value] : value) form.append(name, one)
    }
    const response = await fetch(new URL(path, base), {
      redirect: "manual",
      headers,
      ...(options.form === undefined ? {} : { method: "POST", body: form }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      jar.set(name!, decodeURIComponent(value!))
    }
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** Returns the fields of the consent form. */
  const formOf = ({ text }: PageResponse) => ({
    request: hidden(text, "request"),
    seal: hidden(text, "seal"),
    one: /name="one" value="([^"]*)"/.exec(text)?.[1] ?? "",
  })

  return {
    jar,
    go,
    formOf,
    decide: (
      shown: PageResponse,
      choice: Record<string, string | ReadonlyArray<string>>,
      headers: Record<string, string> = {},
    ) => go("/auth/authorize", { form: { ...formOf(shown), ...choice }, headers }),
    /** Allows an app's request, and returns the redirect address. */
    allow: async (url: string | URL, choice: Record<string, string | ReadonlyArray<string>> = {}): Promise<URL> => {
      const shown = await go(url)
      return redirectOf(
        await go("/auth/authorize", {
          form: { ...formOf(shown), decision: "allow", agents: "one", rights: "read", ...choice },
        }),
      )
    },
  }
}

export type Browser = ReturnType<typeof browser>

/** Registers a client as a local program would. */
export const registerClient = async (base: string, redirects: ReadonlyArray<string>, name = "Test client") => {
  const response = await fetch(`${base}/api/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: name, redirect_uris: redirects }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, any> }
}

export interface AuthorizationParameters {
  readonly client: string
  readonly redirect: string
  readonly challenge: string
  readonly more?: Record<string, string>
}

export const authorizationUrl = (base: string, { client, redirect, challenge, more = {} }: AuthorizationParameters) => {
  const url = new URL("/auth/authorize", base)
  const members = {
    response_type: "code",
    client_id: client,
    redirect_uri: redirect,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "s-1",
    ...more,
  }
  for (const [name, value] of Object.entries(members)) url.searchParams.set(name, value)
  return url
}

export const tokenCall = async (base: string, form: Record<string, string>, path = "/api/oauth/token") => {
  const response = await fetch(`${base}${path}`, { method: "POST", body: new URLSearchParams(form) })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, any>,
  }
}

/** Obtains tokens by consent, for the given scopes or for all. */
export const obtainTokens = async (
  base: string,
  person: Browser,
  client: string,
  redirect: string,
  choice: Record<string, string | ReadonlyArray<string>> = {},
  scopes: ReadonlyArray<string> = [...grantable],
) => {
  const verifier = verifierOf()
  const more = { scope: scopes.join(" ") }
  const back = await person.allow(
    authorizationUrl(base, { client, redirect, challenge: challengeOf(verifier), more }),
    choice,
  )
  const code = back.searchParams.get("code")!
  const exchange = {
    grant_type: "authorization_code",
    client_id: client,
    redirect_uri: redirect,
    code,
    code_verifier: verifier,
  }
  const answer = await tokenCall(base, exchange)
  return {
    back,
    exchange,
    answer,
    access: answer.body["access_token"] as string,
    refresh: answer.body["refresh_token"] as string,
  }
}

let ids = 0
/** Sends one message to the MCP endpoint. */
export const mcp = async (
  base: string,
  token: string | undefined,
  method: string,
  params: Record<string, unknown> = {},
) => {
  const response = await fetch(`${base}/api/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++ids, method, params }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: (text === "" ? {} : JSON.parse(text)) as Record<string, any>,
  }
}

/** Creates an account with an Identity, and its browser. */
export const signedInUser = async (base: string) => {
  const { session, email, org } = await signUp(base)
  const made = await makeIdentity(base, session, newHandle("ada"))
  return { session, email, org, ...made, browser: browser(base, session) }
}

/** Registers a client with these redirect addresses and returns its id. */
export const registerClientId = async (base: string, ...redirects: ReadonlyArray<string>) =>
  (await registerClient(base, redirects, newHandle("client"))).body["client_id"] as string
