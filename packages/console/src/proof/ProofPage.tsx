/** The proofs of an Identity: its keys, its permitted audiences and sites, its sign-ins and tokens, and how others verify it. */
import { useRef } from "preact/hooks"
import { IdentityFrame, type Identity } from "../frame/IdentityFrame.tsx"
import { Skeleton } from "../ui/Loaded.tsx"
import { Clouds } from "./Clouds.tsx"
import { Keys, useKeys } from "./Keys.tsx"
import { Permissions, usePermissions } from "./Permissions.tsx"
import { Published } from "./Published.tsx"
import { SignIns, useSignIns } from "./SignIns.tsx"
import { Tokens, useTokens } from "./Tokens.tsx"
import "./proof.css"

const Ready = ({ identity }: { readonly identity: Identity }) => {
  const { handle } = identity
  const parts = [useSignIns(handle), usePermissions(handle), useKeys(handle), useTokens(handle)]
  const isShown = useRef(false)
  // All parts appear together, so that none pushes another one down. They stay: a part that failed is read again when it
  // appears, and would hide all of them again, without end.
  isShown.current ||= parts.every(({ data, error }) => data !== undefined || error !== null)
  if (!isShown.current) return <Skeleton lines={8} />
  return (
    <div class="stack-loose">
      <SignIns handle={handle} />
      <Permissions handle={handle} />
      <Keys handle={handle} />
      <Tokens handle={handle} />
      <Published identity={identity} />
      <Clouds identity={identity} />
    </div>
  )
}

const ProofPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="proof">
    {(identity) => <Ready key={identity.handle} identity={identity} />}
  </IdentityFrame>
)

export default ProofPage
