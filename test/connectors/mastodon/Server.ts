/**
 * A server for Mastodon's published API, as strict as the real one where a client could be wrong. It rejects unknown applications, codes,
 * verifiers, redirects and tokens, counts characters, paginates by `Link` only, limits calls, and returns recorded error messages
 * (`docs.joinmastodon.org/methods`).
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Kind, ServerOptions, Settings } from "./Settings.ts"
import { documents } from "./Documents.ts"
import { type Application, type Code, makeGrants, scopesOf, secret, type Token } from "./Grants.ts"
import { page, read, ErrorResponse } from "./Exchange.ts"
import { Media } from "./Media.ts"
import { attachStreams } from "./Streams.ts"
import { World, type Account, type Status } from "./World.ts"

export const startServer = async (options: ServerOptions = {}) => {
  const world = new World()
  const applications = new Map<string, Application>()
  const codes = new Map<string, Code>()
  const tokens = new Map<string, Token>()
  const idempotent = new Map<string, Status>()
  const media = new Media()
  const seen: Array<{ readonly method: string; readonly path: string; readonly headers: IncomingMessage["headers"] }> =
    []
  const settings: Settings = { kind: "mastodon", limited: false, spentTwice: 0, remaining: 300, ...options }
  let base = ""
  const isKind = (...kinds: ReadonlyArray<Kind>) => kinds.includes(settings.kind)
  // Ids as these servers make them: ULIDs, flake ids, and a time followed by a hash.
  if (isKind("gotosocial")) world.idOf = (n) => `01JD${String(n).padStart(22, "0")}`
  if (isKind("pleroma")) world.idOf = (n) => `AbCd${String(n).padStart(14, "0")}`
  if (isKind("snac")) world.idOf = (n) => `17323${String(n).padStart(37, "0")}`

  const authorized = (request: IncomingMessage): Account => {
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
    const token = given === undefined ? undefined : tokens.get(given)
    if (token === undefined || (token.endsAt !== undefined && token.endsAt < Date.now())) {
      throw new ErrorResponse(401, "The access token is invalid")
    }
    if (request.method !== "GET" && !token.scopes.includes("write"))
      throw new ErrorResponse(403, "This action is outside the authorized scopes")
    if (token.account.disabled) throw new ErrorResponse(403, "Your login is currently disabled")
    return token.account
  }

  const { grants } = makeGrants({ applications, codes, tokens, settings })

  const statusOf = (account: Account, body: Record<string, any>): Status => {
    const text = String(body["status"] ?? "")
    const attached: ReadonlyArray<string> = body["media_ids"] ?? []
    if (text.trim() === "" && attached.length === 0) {
      throw new ErrorResponse(422, "Validation failed: Text can't be blank")
    }
    // A URL counts as 23 characters, and a mention without its domain.
    const counted = text.replace(/https?:\/\/\S+/g, "x".repeat(23)).replace(/(@[\w.-]+)@[\w.:-]*\w/g, "$1")
    if ([...new Intl.Segmenter().segment(counted)].length > world.characters) {
      throw new ErrorResponse(422, `Validation failed: Text character limit of ${world.characters} exceeded`)
    }
    const pictures = media.attached(attached)
    const parent = body["in_reply_to_id"] == null ? undefined : world.statuses.get(String(body["in_reply_to_id"]))
    if (body["in_reply_to_id"] != null && parent === undefined) {
      throw new ErrorResponse(404, "The post you are trying to reply to does not appear to exist.")
    }
    return world.publish(account, text, {
      visibility: body["visibility"] ?? "public",
      parent,
      spoiler: body["spoiler_text"] ?? "",
      language: body["language"] ?? "en",
      sensitive: body["sensitive"] === true,
      media: pictures,
    })
  }

  const visible = (account: Account, status: Status | undefined): Status => {
    const seenBy = status === undefined ? false : world.isVisible(status, account)
    if (!seenBy) throw new ErrorResponse(404, "Record not found")
    return status!
  }

  const answer = async (request: IncomingMessage, response: ServerResponse, url: URL): Promise<unknown> => {
    const path = url.pathname
    const route = `${request.method} ${path}`
    const own = /^\/api\/v1\/statuses\/(\w+)(\/context)?$/.exec(path)
    await settings.before?.(path)
    const document = documents(base, world.characters, settings)[route]
    if (document !== undefined) return document
    switch (route) {
      case "GET /.well-known/webfinger": {
        const [, user] = /^acct:([^@]+)@/.exec(url.searchParams.get("resource") ?? "") ?? []
        if (user === undefined) throw new ErrorResponse(400, "Bad request")
        return {
          subject: url.searchParams.get("resource"),
          links: [{ rel: "self", type: "application/activity+json", href: `${base}/users/${user}` }],
        }
      }
      case "POST /api/v1/apps": {
        const body = await read(request)
        if (typeof body["client_name"] !== "string" || typeof body["redirect_uris"] !== "string") {
          throw new ErrorResponse(422, "Validation failed: Redirect URI can't be blank")
        }
        const application = {
          id: secret(),
          secret: secret(),
          redirect: body["redirect_uris"],
          scopes: scopesOf(body["scopes"]),
        }
        applications.set(application.id, application)
        return {
          id: "1",
          name: body["client_name"],
          client_id: application.id,
          client_secret: application.secret,
          redirect_uri: application.redirect,
          vapid_key: "",
        }
      }
      case "GET /oauth/authorize": {
        const known = applications.has(url.searchParams.get("client_id") ?? "")
        if (!known && isKind("snac")) throw new ErrorResponse(400, "Bad request")
        return {}
      }
      case "POST /oauth/token": {
        const body = await read(request)
        const grant = grants[body["grant_type"] as keyof typeof grants]
        if (grant === undefined) throw new ErrorResponse(400, "unsupported_grant_type")
        return grant(body)
      }
      case "POST /oauth/revoke": {
        if (settings.revokesNone === true) throw new ErrorResponse(404, "Not Found")
        const body = await read(request, isKind("gotosocial"))
        if (isKind("gotosocial") && body["token"] === undefined)
          throw new ErrorResponse(400, "invalid_request: token not set")
        const application = applications.get(body["client_id"])
        const token = tokens.get(body["token"])
        if (
          application === undefined ||
          application.secret !== body["client_secret"] ||
          (token !== undefined && token.application !== application)
        ) {
          throw new ErrorResponse(403, "unauthorized_client", {
            error_description: "You are not authorized to revoke this token",
          })
        }
        tokens.delete(body["token"])
        if (isKind("snac")) applications.delete(application.id)
        return {}
      }
      case "GET /api/v1/accounts/verify_credentials":
        return world.shown(authorized(request), true)
      case "PATCH /api/v1/accounts/update_credentials": {
        const account = authorized(request)
        const body = await read(request)
        if (typeof body["note"] === "string" && body["note"].length > 500) {
          throw new ErrorResponse(422, "Validation failed: Note is too long (maximum is 500 characters)")
        }
        if (body["bot"] !== undefined) account.bot = (isKind("snac") ? body["bot"] : String(body["bot"])) === "true"
        if (body["note"] !== undefined) account.note = body["note"]
        return world.shown(account, true)
      }
      case "POST /api/v1/statuses": {
        const account = authorized(request)
        const body = await read(request)
        const key = request.headers["idempotency-key"]
        const known =
          typeof key === "string" && isKind("mastodon", "pleroma") ? idempotent.get(`${account.id} ${key}`) : undefined
        if (known !== undefined) return world.status(known)
        const made = statusOf(account, body)
        if (typeof key === "string") idempotent.set(`${account.id} ${key}`, made)
        return world.status(made)
      }
      case "POST /api/v2/media": {
        authorized(request)
        const body = await read(request)
        const file = body["file"]
        if (!(file instanceof Blob)) throw new ErrorResponse(422, "Validation failed: File can't be blank")
        const id = world.nextId()
        const description = body["description"] ?? null
        media.add(id, { type: file.type, size: file.size, description }, settings.processing ?? 0)
        return media.shown(base, id)
      }
      case "GET /api/v1/notifications": {
        const account = authorized(request)
        const types = url.searchParams.getAll("types[]")
        const all = account.notifications.filter(({ type }) => types.length === 0 || types.includes(type))
        return page(response, url, all, 80, isKind("snac")).map((one) => world.notification(one))
      }
      case "GET /api/v1/conversations": {
        const account = authorized(request)
        if (isKind("snac")) return []
        return page(response, url, world.conversations(account), 40).map(({ id, last }) => ({
          id,
          unread: false,
          accounts: [],
          last_status: world.status(last),
        }))
      }
      case "GET /api/v2/search": {
        const account = authorized(request)
        const found = world.resolve(url.searchParams.get("q") ?? "", url.searchParams.get("resolve") === "true")
        return {
          accounts: [],
          hashtags: [],
          statuses: found !== undefined && world.isVisible(found, account) ? [world.status(found)] : [],
        }
      }
    }
    const picture = /^\/api\/v1\/media\/(\w+)$/.exec(path)?.[1]
    if (request.method === "GET" && picture !== undefined && media.pictures.has(picture)) {
      authorized(request)
      media.look(picture)
      return media.shown(base, picture)
    }
    const statuses = /^\/api\/v1\/accounts\/(\w+)\/statuses$/.exec(path)
    if (request.method === "GET" && statuses !== null) {
      const account = authorized(request)
      const all = [...world.statuses.values()].filter(
        (status) => status.account.id === statuses[1] && world.isVisible(status, account),
      )
      return page(response, url, all, 40).map((one) => world.status(one))
    }
    if (request.method === "GET" && own !== null) {
      const account = authorized(request)
      const status = visible(account, world.statuses.get(own[1]!))
      return own[2] === undefined ? world.status(status) : world.context(status, account)
    }
    throw new ErrorResponse(404, "Not Found")
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", base)
    seen.push({ method: request.method ?? "", path: url.pathname, headers: request.headers })
    if (options.instead?.(request, response) === true) return
    const send = (status: number, body: unknown) => {
      response.writeHead(status, { "content-type": "application/json; charset=utf-8" })
      response.end(JSON.stringify(body))
    }
    response.setHeader("x-ratelimit-limit", "300")
    response.setHeader("x-ratelimit-remaining", String(settings.remaining))
    response.setHeader("x-ratelimit-reset", (settings.reset ?? new Date(Date.now() + 120_000)).toISOString())
    if (settings.limited && url.pathname.startsWith("/api/")) {
      request.resume()
      return send(429, { error: "Too many requests" })
    }
    const route = `${request.method} ${url.pathname}`
    const answered = async () => {
      const body = await answer(request, response, url)
      await settings.after?.(route)
      return body
    }
    answered().then(
      (body) => (settings.loses?.(route) === true ? request.socket.destroy() : send(200, body)),
      (error: unknown) =>
        error instanceof ErrorResponse ? send(error.status, error.body) : send(500, { error: String(error) }),
    )
  })
  const streams = attachStreams(server, world, {
    accountOf: (token) => tokens.get(token)?.account,
    instead: () => (typeof settings.streaming === "function" ? settings.streaming : undefined),
    kind: () => settings.kind,
    opens: () => settings.streaming !== undefined && settings.refusesStreams !== true,
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  base = `http://127.0.0.1:${port}`
  world.base = base

  return {
    base,
    world,
    tokens,
    applications,
    media: media.pictures,
    seen,
    settings,
    streams,
    /** Allows the application as the account holder would in a browser, and returns the redirect address. */
    allow: (authorizationUrl: string, account: Account): string => {
      const url = new URL(authorizationUrl)
      const application = applications.get(url.searchParams.get("client_id") ?? "")
      const redirect = url.searchParams.get("redirect_uri")
      if (application === undefined || redirect !== application.redirect) throw new Error("the server shows an error")
      if (url.searchParams.get("response_type") !== "code") throw new Error("the server shows an error")
      const scopes = scopesOf(url.searchParams.get("scope"))
      if (!scopes.every((scope) => application.scopes.includes(scope))) throw new Error("the server shows an error")
      const code = secret()
      codes.set(code, {
        application,
        account,
        redirect,
        scopes,
        challenge: url.searchParams.get("code_challenge") ?? undefined,
      })
      const back = new URL(redirect)
      back.searchParams.set("code", code)
      const state = url.searchParams.get("state")
      if (state !== null) back.searchParams.set("state", state)
      return back.href
    },
    stop: () =>
      new Promise<void>((resolve) => (streams.stop(), server.closeAllConnections(), server.close(() => resolve()))),
  }
}

export type MastodonServer = Awaited<ReturnType<typeof startServer>>
