/** A person at the pages of the server's authorization server, simulated by the calls that those pages make. */
import { type IncomingHttpHeaders, request } from "node:http"
import type { Person } from "./Network.ts"

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const ask = (url: URL, method: string, headers: Record<string, string>, body?: string) =>
  new Promise<Answer>((resolve, reject) => {
    const outgoing = request(url, { method, headers }, (incoming) => {
      let text = ""
      incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      incoming.on("end", () => resolve({ status: incoming.statusCode!, headers: incoming.headers, text }))
    })
    outgoing.on("error", reject).end(body)
  })

/** Signs in, allows or denies the request, and returns the redirect address. */
export const consent = async (
  authorizationUrl: string,
  { handle, did, password }: Person,
  answer: "yes" | "no" = "yes",
): Promise<URL> => {
  const cookies = new Map<string, string>()
  const page = new URL(authorizationUrl)
  const send = async (url: URL, method: string, more: Record<string, string>, body?: string) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ")
    const found = await ask(url, method, { "user-agent": "Mozilla/5.0", cookie, ...more }, body)
    for (const set of found.headers["set-cookie"] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)!
      cookies.set(name!, value!)
    }
    return found
  }
  const navigation = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
  const opened = await send(page, "GET", navigation)
  if (opened.status !== 200) throw new Error(`The authorization page answered ${opened.status}: ${opened.text}`)

  const call = async (name: string, body: object, bearer?: string) => {
    const response = await send(
      new URL(`/@atproto/oauth-provider/~api/${name}`, page),
      "POST",
      {
        "content-type": "application/json",
        "sec-fetch-site": "same-origin",
        "sec-fetch-mode": "same-origin",
        origin: page.origin,
        referer: page.href,
        "x-csrf-token": cookies.get("csrf-token") ?? "",
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      JSON.stringify(body),
    )
    if (response.status !== 200) throw new Error(`${name} answered ${response.status}: ${response.text}`)
    return JSON.parse(response.text)
  }
  const { ephemeralToken } = await call("sign-in", { username: handle, password, locale: "en" })
  const { url } = answer === "yes" ? await call("consent", { did }, ephemeralToken) : await call("reject", {})
  const sent = await send(new URL(url), "GET", { ...navigation, "sec-fetch-site": "same-origin", referer: page.href })
  if (sent.headers.location === undefined) throw new Error(`The way back is missing: ${sent.status} ${sent.text}`)
  return new URL(sent.headers.location)
}
