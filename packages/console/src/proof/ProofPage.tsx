/** What an Identity proves to others: its keys, where it may prove what, its sign-ins and tokens, and how others verify it. */
import { IdentityFrame, type Identity } from "../frame/IdentityFrame.tsx"
import { Clouds } from "./Clouds.tsx"
import { Keys } from "./Keys.tsx"
import { Permissions } from "./Permissions.tsx"
import { Published } from "./Published.tsx"
import { SignIns } from "./SignIns.tsx"
import { Tokens } from "./Tokens.tsx"
import "./proof.css"

const Ready = ({ identity }: { readonly identity: Identity }) => (
  <div class="stack-loose">
    <SignIns handle={identity.handle} />
    <Permissions handle={identity.handle} />
    <Keys handle={identity.handle} />
    <Tokens handle={identity.handle} />
    <Published identity={identity} />
    <Clouds identity={identity} />
  </div>
)

const ProofPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="proof">
    {(identity) => <Ready key={identity.handle} identity={identity} />}
  </IdentityFrame>
)

export default ProofPage
