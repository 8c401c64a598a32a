/** The frame of the settings pages. */
import type { ComponentChildren } from "preact"
import { Page, Tabs } from "../ui/Page.tsx"
import { say } from "./texts.ts"

export const Frame = ({ children }: { readonly children: ComponentChildren }) => (
  <Page title={say("title")}>
    <Tabs
      label={say("title")}
      tabs={[
        { to: "/settings", text: say("general") },
        { to: "/settings/limits", text: say("limits") },
        { to: "/settings/terms", text: say("terms") },
        { to: "/settings/data", text: say("data") },
      ]}
    />
    {children}
  </Page>
)
