/** Deletes the account after confirmation. */
import type { ComponentChildren } from "preact"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { account, signOut } from "../client/Session.ts"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { say } from "./texts.ts"

/** `children` are the consequences. */
export const Removal = ({ children }: { readonly children: ComponentChildren }) => {
  const { email } = account().org
  const remove = useCommand(async (key) => {
    await call("POST /api/account/deletion", { body: { confirm: email } }, { key })
    await signOut()
  })
  return (
    <ConfirmButton kind="danger" doing={say("remove")} typed={email} command={remove}>
      {children}
    </ConfirmButton>
  )
}
