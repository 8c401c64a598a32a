import { Page } from "../ui/Page.tsx"

const IdentitiesPage = () => <Page title="IdentitiesPage">{null}</Page>

export default IdentitiesPage
