/** The entry point: shows the console to an account holder with a session, and the sign-in page to everybody else. */
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
import "./shell/Look.tsx"
import { knowIdentities } from "./shell/Identities.ts"
import { Outlet } from "./shell/Outlet.tsx"
import { Shell } from "./shell/Shell.tsx"
import { language } from "./texts/Texts.ts"
import { Skeleton } from "./ui/Loaded.tsx"
import { ProblemNote } from "./ui/Problem.tsx"
// Most pages have a list; this keeps its code out of the chunk of each.
import "./client/Lists.ts"

/** Every path shows the sign-in page until a session exists; sign-in then returns to that path. */
const wayIn = [page(everywhere, () => import("./account/SignInPage.tsx"))]
/** New Terms of Service close the console until they are accepted. Agents are not affected. */
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
      return <Outlet key="out" routes={wayIn} />
    default:
      return now.session.tos.gated ? (
        // The keys differ, so that a page of the account is not rendered once more after the sign-out.
        <Outlet key="gate" routes={gate} />
      ) : (
        // Another account gets pages of its own: no query, input or message of the one before stays on them.
        <Shell key={now.session.org.id}>
          <Outlet routes={routes} />
        </Shell>
      )
  }
}

document.documentElement.lang = language.peek()
void look()

const draw = () =>
  render(
    <QueryClientProvider client={client}>
      <Console />
    </QueryClientProvider>,
    document.getElementById("app")!,
  )
/** Loads the page and its data while the session is still being checked. */
const prepare = () => {
  if (!isMarked()) return
  void knowIdentities()
  routeOf(routes, path.peek())
    ?.load()
    .catch(() => undefined)
}

// Separate tasks, so that no single task blocks input.
for (const step of [draw, prepare, () => listen(routes)]) setTimeout(step)
