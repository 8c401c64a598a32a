import { Page } from "../ui/Page.tsx"

const IdentityPage = () => <Page title="IdentityPage">{null}</Page>

export default IdentityPage
