import { Page } from "../ui/Page.tsx"
import { NewIdentity } from "./NewIdentity.tsx"
import { say } from "./texts.ts"

const NewIdentityPage = () => (
  <Page title={say("new_title")} lead={say("new_lead")}>
    <NewIdentity />
  </Page>
)

export default NewIdentityPage
