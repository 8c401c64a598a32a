import { Page } from "../ui/Page.tsx"

const NewIdentityPage = () => <Page title="NewIdentityPage">{null}</Page>

export default NewIdentityPage
