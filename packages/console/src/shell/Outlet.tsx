/** Renders the page of the current path. The previous page stays until the next one has loaded. */
import { Component, type ComponentChildren, type ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { type PageRoute, path } from "../router/Router.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Empty, Page } from "../ui/Page.tsx"
import { Skeleton } from "../ui/Loaded.tsx"
import { say } from "./texts.ts"

const Nowhere = () => (
  <Page title={say("nowhere")}>
    <Empty icon="search" title={say("nowhere")} action={<ButtonLink href="/console/">{say("to_home")}</ButtonLink>}>
      {say("nowhere_why")}
    </Empty>
  </Page>
)

const Fault = ({ failure }: { readonly failure: unknown }) => (
  <Page title={say("fault")}>
    <Empty
      icon="warning"
      title={say("fault")}
      action={
        <Button kind="primary" icon="again" onClick={() => location.reload()}>
          {say("reload")}
        </Button>
      }
    >
      {failure instanceof Error ? failure.message : String(failure)}
    </Empty>
  </Page>
)

/** Shows an error in place of a page that failed to render; the navigation stays. */
class Guard extends Component<{ readonly children: ComponentChildren }, { readonly failure?: unknown }> {
  override state: { readonly failure?: unknown } = {}
  override componentDidCatch(failure: unknown) {
    this.setState({ failure })
  }
  render() {
    return "failure" in this.state ? <Fault failure={this.state.failure} /> : this.props.children
  }
}

interface Shown {
  readonly at: string
  readonly page: ComponentType<Record<string, string>> | undefined
  readonly params: Readonly<Record<string, string>>
  readonly failure?: unknown
}

/** Whether a chunk of an older build is missing, in which case the document is reloaded once. */
const isStale = (failure: unknown) =>
  failure instanceof Error && /dynamically imported module|module script|Unable to preload/i.test(failure.message)

export const Outlet = ({ routes }: { readonly routes: ReadonlyArray<PageRoute> }) => {
  const at = path.value
  const [shown, setShown] = useState<Shown>()
  useEffect(() => {
    let isLate = false
    for (const route of routes) {
      const params = route.match(at)
      if (params === undefined) continue
      route.load().then(
        (page) => {
          sessionStorage.removeItem("svc-reloaded")
          if (!isLate) setShown({ at: route.path, page, params })
        },
        (failure: unknown) => {
          if (isStale(failure) && navigator.onLine && sessionStorage.getItem("svc-reloaded") === null) {
            sessionStorage.setItem("svc-reloaded", "1")
            location.reload()
          } else if (!isLate) setShown({ at, page: undefined, params, failure })
        },
      )
      return () => {
        isLate = true
      }
    }
    setShown({ at, page: Nowhere, params: {} })
    return undefined
  }, [at, routes])
  if (shown === undefined) return <Skeleton lines={6} />
  const { page: Shown, params, failure } = shown
  if (Shown === undefined) return <Fault failure={failure} />
  // Pages of different Identities share no form state.
  return (
    <Guard key={`${shown.at} ${params["handle"] ?? ""}`}>
      <Shown {...params} />
    </Guard>
  )
}
