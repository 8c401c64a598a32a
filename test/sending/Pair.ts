/** Two agents of one Org, Ada and Grace, where Ada may send to Grace, and helpers to make requests as one of them. */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

export type Json = Record<string, any>

export const allow = (service: TestService, token: string, handle: string, address: string) =>
  call(service.base, "POST", `/api/identities/${handle}/allowed-recipients`, { token, body: { address } })

export const messagesOf = async (service: TestService, token: string, handle: string, query = "") =>
  (await call(service.base, "GET", `/api/identities/${handle}/messages${query}`, { token })).body
    .messages as ReadonlyArray<Json>

type Agent = Awaited<ReturnType<typeof makeIdentity>>

export const startPair = async () => {
  const service = await sharedService()
  const session = (await signUp(service.base)).session
  const ada = await makeIdentity(service.base, session)
  const grace = await makeIdentity(service.base, session)
  await allow(service, session, ada.handle, grace.identity.email)
  /** Makes a request below the agent's Identity with its own key. */
  const as = (who: Agent, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    call(service.base, method, `/api/identities/${who.handle}${path}`, {
      token: who.secrets.identity_key,
      headers,
      ...(body === undefined ? {} : { body }),
    })
  return { service, session, ada, grace, as }
}

export type Pair = Awaited<ReturnType<typeof startPair>>
