/** Connecting an account with an app password. */
import { Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { connect, type Context } from "./Context.ts"

export const suite = (context: Context) =>
  describe("connecting with an app password", () => {
    it("finds the account's server from a handle, with or without @, or a DID", async () => {
      const password = await context.ada.appPassword()
      for (const account of ["ada.test", "@ada.test", context.ada.did]) {
        const { connected } = await context.rig.connect(account, password)
        expect(connected).toMatchObject({
          account: { name: "ada.test", id: context.ada.did, service: context.network.pds },
          via: "app_password",
          disclosed: false,
        })
      }
    })

    it("reports the capability `dm` only if the app password allows it", async () => {
      const without = await connect(context, context.ada, false)
      expect(without.connected.capabilities).toEqual(["post", "reply", "thread", "notifications"])
      const withDm = await connect(context, context.ada, true)
      expect(withDm.connected.capabilities).toEqual(["post", "reply", "thread", "notifications", "dm"])
    })

    it("rejects a wrong password with the platform's message, and an unknown handle as invalid input", async () => {
      const login = (account: string) =>
        context.rig.failure(
          context.rig.platform.login!(context.rig.visit, { account, password: Redacted.make("not it") }),
        )
      expect(await login("ada.test")).toMatchObject({
        _tag: "CredentialRefused",
        message: "Invalid identifier or password",
      })
      expect(await login("nobody.test")).toMatchObject({ _tag: "InputRefused", path: "/account" })
      expect(await login("no handle")).toMatchObject({ _tag: "InputRefused", path: "/account" })
    })

    it("stores no password", async () => {
      const password = await context.ada.appPassword()
      const { connected } = await context.rig.connect("ada.test", password)
      expect(Redacted.value(connected.credential)).not.toContain(password)
    })
  })
