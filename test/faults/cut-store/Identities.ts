/** Identities that a caller creates and deletes, and rotations of its own Identity's signing key. */
import { newHandle } from "../../harness/Client.ts"
import type { Caller, Resources } from "./Caller.ts"

export const identities = (caller: Caller): Resources => {
  const known = new Set<string>()

  const create = async () => {
    const handle = newHandle("cut")
    const body = { handle }
    const tool = ["svc_identity_create", {}, "write"] as const
    const change = { action: "identities.create", method: "POST", path: "/api/identities", body, tool }
    const made = await caller.change(change)
    if (made !== undefined) known.add(handle)
  }

  const remove = async () => {
    const handle = caller.pick(known)
    if (handle === undefined) return create()
    const path = `/api/identities/${handle}`
    await caller.change({
      action: "identities.remove",
      raises: ["identity.deleted"],
      method: "DELETE",
      path,
      tool: ["svc_identity_delete", { handle }],
      repeatedAs: 404,
    })
    known.delete(handle)
  }

  const rotate = () =>
    caller.change({
      action: "proof.rotateKey",
      raises: ["proof.key_rotated"],
      method: "POST",
      path: `${caller.own}/signing-key/rotate`,
    })

  return {
    operations: [create, remove, rotate],
    compare: async () => {
      for (const handle of known) await caller.read(`/api/identities/${handle}`)
    },
  }
}
