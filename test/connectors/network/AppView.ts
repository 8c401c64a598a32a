/**
 * Replaces Bluesky's AppView behind an account's own server, as far as a Connector uses it: notifications and threads, computed from the
 * repositories of the test's server on each request.
 */
import { open, Refusal, type Service } from "./Service.ts"

export interface AppView extends Service {
  /** Received methods in order. */
  readonly asked: Array<string>
}

interface Stored {
  readonly uri: string
  readonly cid: string
  readonly value: any
  readonly did: string
}

const collection = "app.bsky.feed.post"

/** Exempts the AppView from the server's rate limits: the real AppView reads a feed of posts and sends no such requests. */
export const bypass = "stand-ins"

/** Starts the AppView. The address of the account's server is a function, since that server needs this one's address to start. */
export const openAppView = async (pds: () => string): Promise<AppView> => {
  const requests: Array<string> = []
  const get = async (method: string, query: Record<string, string>) => {
    const answer = await fetch(`${pds()}/xrpc/${method}?${new URLSearchParams(query)}`, {
      headers: { "x-ratelimit-bypass": bypass },
    })
    const body = (await answer.json()) as any
    // Records of a suspended account are unavailable, and some accounts have no profile.
    const isGone = /^(Repo|RecordNotFound)|Could not find repo/.test(`${body.error} ${body.message}`)
    if (!answer.ok && !isGone) throw new Error(`${method}: ${JSON.stringify(body)}`)
    return body
  }

  const posts = async (): Promise<Array<Stored>> => {
    const { repos } = await get("com.atproto.sync.listRepos", { limit: "500" })
    const all: Array<Stored> = []
    for (const { did } of repos) {
      let cursor: string | undefined
      do {
        const page = await get("com.atproto.repo.listRecords", {
          repo: did,
          collection,
          limit: "100",
          ...(cursor === undefined ? {} : { cursor }),
        })
        all.push(...(page.records ?? []).map((record: object) => ({ ...record, did })))
        cursor = (page.records ?? []).length === 0 ? undefined : page.cursor
      } while (cursor !== undefined)
    }
    return all
  }

  const profile = async (did: string) => {
    const { handle } = await get("com.atproto.repo.describeRepo", { repo: did })
    const record = await get("com.atproto.repo.getRecord", {
      repo: did,
      collection: "app.bsky.actor.profile",
      rkey: "self",
    })
    return { did, handle, ...(record.value?.displayName ? { displayName: record.value.displayName } : {}) }
  }

  const mentions = ({ value }: Stored, did: string) =>
    (value.facets ?? []).some((facet: any) => facet.features.some((feature: any) => feature.did === did))
  const answers = ({ value }: Stored, did: string) => value.reply?.parent.uri.startsWith(`at://${did}/`) === true

  const notifications = async (did: string, query: URLSearchParams) => {
    const reasons = query.getAll("reasons")
    const limit = Number(query.get("limit") ?? 50)
    const cursor = query.get("cursor")
    const all = (await posts())
      .filter((post) => post.did !== did)
      .flatMap((post) => {
        const reason = answers(post, did) ? "reply" : mentions(post, did) ? "mention" : undefined
        return reason === undefined || (reasons.length > 0 && !reasons.includes(reason)) ? [] : [{ post, reason }]
      })
      .filter(({ post }) => cursor === null || post.value.createdAt < cursor)
      .sort((one, other) => (one.post.value.createdAt < other.post.value.createdAt ? 1 : -1))
    const page = all.slice(0, limit)
    const authors = new Map<string, object>()
    for (const { post } of page) if (!authors.has(post.did)) authors.set(post.did, await profile(post.did))
    return {
      notifications: page.map(({ post, reason }) => ({
        uri: post.uri,
        cid: post.cid,
        author: authors.get(post.did),
        reason,
        record: post.value,
        isRead: false,
        indexedAt: post.value.createdAt,
      })),
      ...(all.length > limit ? { cursor: page.at(-1)!.post.value.createdAt } : {}),
    }
  }

  const thread = async (query: URLSearchParams) => {
    const all = await posts()
    const view = async (post: Stored) => ({
      uri: post.uri,
      cid: post.cid,
      author: await profile(post.did),
      record: post.value,
      indexedAt: post.value.createdAt,
    })
    const type = "app.bsky.feed.defs#threadViewPost"
    const above = async (post: Stored): Promise<object | undefined> => {
      const uri = post.value.reply?.parent.uri
      if (uri === undefined) return undefined
      const parent = all.find((one) => one.uri === uri)
      if (parent === undefined) return { $type: "app.bsky.feed.defs#notFoundPost", uri, notFound: true }
      return { $type: type, post: await view(parent), parent: await above(parent) }
    }
    const below = async (post: Stored): Promise<Array<object>> =>
      Promise.all(
        all
          .filter(({ value }) => value.reply?.parent.uri === post.uri)
          .map(async (reply) => ({ $type: type, post: await view(reply), replies: await below(reply) })),
      )
    const found = all.find(({ uri }) => uri === query.get("uri"))
    if (found === undefined) throw new Refusal(400, "NotFound", `Post not found: ${query.get("uri")}`)
    return { thread: { $type: type, post: await view(found), parent: await above(found), replies: await below(found) } }
  }

  const service = await open("bsky_appview", async ({ method, query, did }) => {
    requests.push(method)
    if (method === "app.bsky.notification.listNotifications") return notifications(did, query)
    if (method === "app.bsky.feed.getPostThread") return thread(query)
    if (method === "app.bsky.actor.getProfile") return profile(query.get("actor")!)
    throw new Refusal(501, "MethodNotImplemented", `The test network has no ${method}.`)
  })
  return { ...service, asked: requests }
}
