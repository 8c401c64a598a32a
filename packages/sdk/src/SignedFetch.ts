/** A `fetch` that signs each request as the Identity (Web Bot Auth). */

/** Requests a signature from the service. */
export type SignRequest = (
  request: { readonly method: string; readonly url: string; readonly content_digest?: string },
  options: { readonly signal: AbortSignal },
) => Promise<{ readonly headers: Readonly<Record<string, string>> }>

const redirecting = new Set([301, 302, 303, 307, 308])
/** The limit of browsers. */
const redirectsAtMost = 20

const digestOf = async (body: ArrayBuffer): Promise<string> => {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body))
  return `sha-256=:${btoa(String.fromCharCode(...digest))}:`
}

/**
 * Returns a `fetch` with signed requests. The signature covers method, address and body. Redirects are followed here, since
 * the request to each address has its own signature.
 */
export const signedFetch =
  (sign: SignRequest, request: typeof fetch): typeof fetch =>
  async (input, init) => {
    const first = new Request(input, init)
    const { redirect, signal } = first
    const headers = new Headers(first.headers)
    let body = first.body === null ? undefined : await first.arrayBuffer()
    let { method, url } = first
    for (let n = 0; ; n++) {
      const digest = body === undefined ? {} : { content_digest: await digestOf(body) }
      const signed = await sign({ method, url, ...digest }, { signal })
      for (const [name, value] of Object.entries(signed.headers)) headers.set(name, value)
      const sent = { method, headers, signal, redirect: "manual", ...(body === undefined ? {} : { body }) } as const
      const response = await request(url, sent)
      const location = response.headers.get("location")
      if (redirect === "manual" || location === null || !redirecting.has(response.status)) return response
      await response.body?.cancel()
      if (redirect === "error" || n === redirectsAtMost) {
        throw new TypeError(`${url} ${redirect === "error" ? "redirects" : "redirects too often"}`)
      }
      const { status } = response
      // The rules of fetch: a form's redirect is read with GET, and credentials stay at their origin.
      if ((status === 303 && method !== "HEAD") || (status < 303 && method === "POST")) {
        method = "GET"
        body = undefined
        for (const name of ["content-type", "content-encoding", "content-language", "content-digest"]) {
          headers.delete(name)
        }
      }
      const target = new URL(location, url)
      if (target.origin !== new URL(url).origin) for (const name of ["authorization", "cookie"]) headers.delete(name)
      url = target.href
    }
  }
