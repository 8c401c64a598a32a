/** An account whose Identity signs in at a site, and what the tests of sign-ins do with both. */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService } from "../harness/Service.ts"
import { open, postSignIn, startRelyingParty } from "./RelyingParty.ts"

export const startSignInAccount = async () => {
  const service = await startService()
  const { session } = await signUp(service.base)
  const made = await makeIdentity(service.base, session)
  const { handle } = made
  const key: string = made.secrets.identity_key
  const id: string = made.identity.id
  const site = await startRelyingParty(service.base, { clientBy: "document" })

  const path = (name = handle) => `/api/identities/${name}/sign-ins`
  const allow = (sites: unknown, token = session, name = handle) =>
    call(service.base, "PATCH", `/api/identities/${name}/proof`, { token, body: { sites } })
  const post = (url: URL | string, token = key, name = handle) => postSignIn(service.base, name, token, url)
  const turn = (outgoing: string) =>
    call(service.base, "PATCH", `/api/identities/${handle}/mail`, { token: session, body: { outgoing } })
  const userinfo = async (token: string) => {
    const response = await fetch(`${service.base}/api/oauth/userinfo`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    }
  }

  /** Signs in at the site, and returns what the site knows. */
  const signIn = async (at = site, token = key) => {
    const { status, body } = await post(await at.login(), token)
    if (status !== 201) throw new Error(JSON.stringify(body))
    return { visitor: await open(body.redirect_url), body }
  }

  /** Starts a sign-in and returns what the token endpoint expects of the site. */
  const started = async () => {
    const url = await site.login()
    const { body } = await post(url)
    const back = new URL(body.redirect_url)
    return {
      id: body.id as string,
      form: {
        grant_type: "authorization_code",
        client_id: site.clientId,
        redirect_uri: `${site.base}/callback`,
        code: back.searchParams.get("code")!,
        code_verifier: site.verifierOf(url),
      },
    }
  }

  await allow([site.site])
  return {
    service,
    site,
    session,
    handle,
    key,
    id,
    path,
    allow,
    post,
    turn,
    userinfo,
    signIn,
    started,
    stop: async () => {
      await site.stop()
      await service.stop()
    },
  }
}

export type SignInAccount = Awaited<ReturnType<typeof startSignInAccount>>
