/** The directory and the account server of the packages in `packages/`, in this process. */
import { AsyncLocalStorage } from "node:async_hooks"
import type { Server } from "node:http"
import * as path from "node:path"

/** The secret with which the account server signs the tokens of app passwords. */
export const tokenSecret = "jwt-secret"

export interface Directory {
  readonly url: string
  readonly close: () => Promise<void>
}

export interface Accounts {
  readonly listener: Server
  /** The server's context is untyped, because its types are not installed when this file is checked. */
  readonly ctx: any
  readonly close: () => Promise<void>
}

/** Resolves handles from the server's own accounts only, without requests to other servers. */
const handlesAreLocal = (ctx: any) => {
  ctx.idResolver.handle.resolve = async (handle: string) => (await ctx.accountManager.getAccount(handle))?.did
}

/**
 * Removes the delay of sign-ins: the server takes a third of a second for each, to hide its duration from attackers, which was most of the
 * time of these tests. Returns a function that restores the delay.
 */
const promptSignIns = (ctx: any) => {
  const { setTimeout } = globalThis
  const signingIn = new AsyncLocalStorage<true>()
  const login = ctx.accountManager.login.bind(ctx.accountManager)
  ctx.accountManager.login = (credentials: unknown) => signingIn.run(true, () => login(credentials))
  globalThis.setTimeout = ((run: (...rest: Array<any>) => void, millis?: number, ...rest: Array<any>) =>
    setTimeout(run, signingIn.getStore() === true ? 0 : millis, ...rest)) as typeof setTimeout
  return () => {
    globalThis.setTimeout = setTimeout
  }
}

/** Loads the servers from `packages`, the URL of the folder with their packages. */
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
    /** Starts an account server whose data are stored in the folder `data`. */
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
        // The key is the same at every start.
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
