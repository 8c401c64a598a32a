/** The directory and the server of accounts as `packages/` has them, in this process. */
import { AsyncLocalStorage } from "node:async_hooks"
import type { Server } from "node:http"
import * as path from "node:path"

/** What the server of accounts signs the tokens of app passwords with. */
export const tokenSecret = "jwt-secret"

export interface Directory {
  readonly url: string
  readonly close: () => Promise<void>
}

export interface Accounts {
  readonly listener: Server
  /** The server's own, whose types are not installed where these are checked. */
  readonly ctx: any
  readonly close: () => Promise<void>
}

/** Nobody else's handles are asked for: its own are those that it has accounts of. */
const handlesAreLocal = (ctx: any) => {
  ctx.idResolver.handle.resolve = async (handle: string) => (await ctx.accountManager.getAccount(handle))?.did
}

/**
 * Sign-ins are judged by the server as they are, but answered at once: so that nobody guesses by how long one takes, each
 * takes a third of a second, which was most of the time of these tests. Answers what sets it right again.
 */
const promptSignIns = (ctx: any) => {
  const { setTimeout } = globalThis
  const signingIn = new AsyncLocalStorage<true>()
  const login = ctx.accountManager.login.bind(ctx.accountManager)
  ctx.accountManager.login = (asked: unknown) => signingIn.run(true, () => login(asked))
  globalThis.setTimeout = ((run: (...rest: Array<any>) => void, millis?: number, ...rest: Array<any>) =>
    setTimeout(run, signingIn.getStore() === true ? 0 : millis, ...rest)) as typeof setTimeout
  return () => {
    globalThis.setTimeout = setTimeout
  }
}

/** `packages` is the URL of the folder that they are in. */
export const serversOf = async (packages: string) => {
  const [{ PDS }, plc]: ReadonlyArray<any> = await Promise.all(
    ["@atproto/pds", "@did-plc/server"].map((name) => import(`${packages}/${name}/dist/index.js`)),
  )
  return {
    directory: async (port: number): Promise<Directory> => {
      const server = plc.PlcServer.create({ db: plc.Database.mock(), port })
      await server.start()
      return { url: `http://localhost:${port}`, close: () => server.destroy() }
    },
    /** Its data stay in the folder. */
    accounts: async (data: string, config: object): Promise<Accounts> => {
      const server = await PDS.fromEnv({
        devMode: true,
        dataDirectory: data,
        blobstoreDiskLocation: path.join(data, "blobs"),
        adminPassword: "admin-pass",
        jwtSecret: tokenSecret,
        serviceHandleDomains: [".test"],
        modServiceUrl: "https://moderator.invalid",
        modServiceDid: "did:example:invalid",
        // The same at each start.
        plcRotationKeyK256PrivateKeyHex: "8b12f5a1c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e",
        inviteRequired: false,
        disableSsrfProtection: true,
        ...config,
      })
      handlesAreLocal(server.ctx)
      const slowSignIns = promptSignIns(server.ctx)
      const close = () => {
        slowSignIns()
        return server.destroy()
      }
      return { listener: await server.start(), ctx: server.ctx, close }
    },
  }
}
