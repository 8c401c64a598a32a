/** The console: who is signed in sees their agents, everybody else the way in. */
import "./ui/tokens.css"
import "./ui/base.css"
import "./ui/controls.css"
import "./ui/parts.css"
import "./shell/shell.css"
import { QueryClientProvider } from "@tanstack/preact-query"
import { render } from "preact"
import { client } from "./client/Queries.ts"
import { isMarked, look, state } from "./client/Session.ts"
import { everywhere, listen, page, path, routeOf } from "./router/Router.ts"
import { routes } from "./Routes.ts"
import "./shell/Look.ts"
import { knowIdentities } from "./shell/Identities.ts"
import { Outlet } from "./shell/Outlet.tsx"
import { Shell } from "./shell/Shell.tsx"
import { language } from "./texts/Texts.ts"
import { Skeleton } from "./ui/Loaded.tsx"
import { ProblemNote } from "./ui/Problem.tsx"

/** Who is not signed in sees this wherever they came to; signing in leads back there. */
const wayIn = [page(everywhere, () => import("./account/SignInPage.tsx"))]
/** Terms that came into force close the console, and only the console: agents go on. */
const gate = [page(everywhere, () => import("./account/TermsPage.tsx"))]

const Console = () => {
  const now = state.value
  switch (now.is) {
    case "unknown":
      return (
        <div class="plain-page">
          <Skeleton lines={3} />
        </div>
      )
    case "unreachable":
      return (
        <main class="plain-page">
          <ProblemNote failure={now.failure} onRetry={() => void look()} />
        </main>
      )
    case "out":
      return <Outlet routes={wayIn} />
    default:
      return now.session.tos.gated ? (
        <Outlet routes={gate} />
      ) : (
        <Shell>
          <Outlet routes={routes} />
        </Shell>
      )
  }
}

document.documentElement.lang = language.peek()
void look()

/** The document shows a skeleton until then. */
const draw = () =>
  render(
    <QueryClientProvider client={client}>
      <Console />
    </QueryClientProvider>,
    document.getElementById("app")!,
  )
/** While the service is asked who it is, what they will see is on its way. */
const prepare = () => {
  if (!isMarked()) return
  void knowIdentities()
  routeOf(routes, path.peek())
    ?.load()
    .catch(() => undefined)
}

// Each as a task of its own, so that no single one keeps the page from answering.
for (const step of [draw, prepare, () => listen(routes)]) setTimeout(step)
