/** Mail programs that submit through the whole service, and their delivered messages. */
import { createTransport } from "nodemailer"
import { call, makeIdentity } from "../../harness/Client.ts"
import { eventually, type TestService } from "../../harness/Service.ts"

/** An Identity with a mail program, and its Allowed Recipients. */
export const program = async (service: TestService, token: string, allowed: ReadonlyArray<string> = []) => {
  const { handle, secrets } = await makeIdentity(service.base, token)
  const at = (path: string) => `/api/identities/${handle}${path}`
  const allow = (address: string) => call(service.base, "POST", at("/allowed-recipients"), { token, body: { address } })
  for (const address of allowed) await allow(address)
  const address = `${handle}@mail.localhost`
  const list = async () => (await call(service.base, "GET", at("/messages"), { token })).body.messages
  return {
    handle,
    address,
    user: secrets.smtp.username as string,
    pass: secrets.smtp.password as string,
    key: secrets.identity_key as string,
    secrets,
    allow,
    patch: (body: object) => call(service.base, "PATCH", at("/mail"), { token, body }),
    rotate: () => call(service.base, "POST", at("/identity-key/rotate"), { token, body: {} }),
    remove: () => call(service.base, "DELETE", at(""), { token }),
    list,
    outbound: async () => (await list()).filter(({ direction }: { direction: string }) => direction === "outbound"),
    raw: async (id: string) => (await call<string>(service.base, "GET", at(`/messages/${id}/raw`), { token })).body,
    read: async (id: string) => (await call(service.base, "GET", at(`/messages/${id}`), { token })).body,
    /** Returns the calls of the account in this minute. */
    calls: async () => {
      const { body } = await call(service.base, "GET", "/api/limits", { token })
      return body.limits.find(({ name }: { name: string }) => name === "calls").used as number
    },
    /** Waits for the message with this subject. */
    received: (subject: string) =>
      eventually(list, (messages) =>
        messages.some((one: any) => one.direction === "inbound" && one.subject === subject),
      ).then((messages) => messages.find((one: any) => one.direction === "inbound" && one.subject === subject)),
    /** nodemailer as frameworks use it. */
    transport: (options: object = {}) =>
      createTransport({
        host: "127.0.0.1",
        port: service.submissionPort,
        secure: false,
        auth: { user: secrets.smtp.username, pass: secrets.smtp.password },
        tls: { rejectUnauthorized: false },
        ...options,
      }),
  }
}

export type Program = Awaited<ReturnType<typeof program>>
