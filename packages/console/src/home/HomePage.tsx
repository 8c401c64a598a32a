import { Page } from "../ui/Page.tsx"

const HomePage = () => <Page title="HomePage">{null}</Page>

export default HomePage
