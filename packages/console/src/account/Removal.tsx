/** Deleting the account: the button, and what is asked before. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call } from "../client/Client.ts"
import { account, signOut } from "../client/Session.ts"
import { Button } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { say } from "./texts.ts"

/** `children`: what comes of it. */
export const Removal = ({ children }: { readonly children: ComponentChildren }) => {
  const { email } = account().org
  const [asking, setAsking] = useState(false)
  const remove = useAct(async (act) => {
    await call("POST /api/account/deletion", { body: { confirm: email } }, { act })
    await signOut()
  })
  return (
    <>
      <Button kind="danger" onClick={() => setAsking(true)}>
        {say("remove")}
      </Button>
      {asking ? (
        <Confirm
          title={say("remove")}
          doing={say("remove")}
          typed={email}
          act={remove}
          onClose={() => setAsking(false)}
        >
          {children}
        </Confirm>
      ) : null}
    </>
  )
}
