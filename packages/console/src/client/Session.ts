/** The session of this browser. The credential is an httpOnly cookie, so scripts only see the account that it belongs to. */
import { effect, signal } from "@preact/signals"
import { type Answer, call, Refused, signedOut } from "./Client.ts"
import { later } from "./Idle.ts"
import { accountChanged } from "./Invalidation.ts"
import { follow, unfollow } from "./Live.ts"
import { client } from "./Queries.ts"
import { deleteAllUnsaved, storeUnsavedFor } from "./Unsaved.ts"
import { go, place } from "../router/Router.ts"
import { language, speak } from "../texts/Texts.ts"

/** The path to open after sign-in, stored for all tabs, because the sign-in link opens a new one. */
const returnKey = "svc-return"
const keptMillis = 15 * 60_000

export const keepReturn = (path: string) => {
  try {
    if (path !== "/") localStorage.setItem(returnKey, JSON.stringify({ path, at: Date.now() }))
  } catch {
    // Storage is not available: sign-in leads to Home.
  }
}

/** Returns the stored path once; undefined if it is missing or expired. */
export const takeReturn = (): string | undefined => {
  try {
    const kept = JSON.parse(localStorage.getItem(returnKey) ?? "null") as { path: string; at: number } | null
    localStorage.removeItem(returnKey)
    return kept !== null && Date.now() - kept.at < keptMillis && kept.path.startsWith("/") ? kept.path : undefined
  } catch {
    return undefined
  }
}

type SessionAnswer = Answer<"GET /api/auth/session">

/** `lost`: the session has ended while a page was open. The page stays visible, so that input is not lost. */
export type State =
  | { readonly is: "unknown" }
  | { readonly is: "unreachable"; readonly failure: Error }
  | { readonly is: "out" }
  | { readonly is: "lost"; readonly session: SessionAnswer }
  | { readonly is: "in"; readonly session: SessionAnswer }

export const state = signal<State>({ is: "unknown" })

const others = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("svc-session")
others?.addEventListener("message", ({ data }) => (data === "signed-out" ? leave() : void look()))

/** A readable cookie beside the session cookie. If it is missing, no request is needed to know that there is no session. */
const mark = "svc_signed_in"
export const isMarked = () => document.cookie.split(/; */).includes(`${mark}=1`)
const unmark = () => (document.cookie = `${mark}=; Path=/; Max-Age=0; SameSite=Lax`)

/** The account whose data may be in memory, also after its session has ended. */
let known: string | undefined

/** Number of checks of the session. Only the last one counts: another account can have signed in since an earlier one. */
let checks = 0

/** Milliseconds until a check that got no response is repeated. */
const pause = (failures: number) => Math.min(30_000, 500 * 2 ** failures)

/** Loads the session. If a page is open and there is no response, it tries again, because the account may have changed. */
export const look = async (failures = 0): Promise<void> => {
  const check = ++checks
  if (!isMarked()) {
    if (state.peek().is === "unknown") state.value = { is: "out" }
    return
  }
  try {
    const session = await call("GET /api/auth/session")
    if (check !== checks) return
    const before = state.peek()
    if (known !== undefined && known !== session.org.id) {
      // Data of another account must not stay visible, and its live stream ends.
      unfollow()
      client.clear()
    }
    known = session.org.id
    if (language.peek() !== session.org.language) speak(session.org.language)
    storeUnsavedFor(session.org.id)
    const isNew = before.is === "unknown" || before.is === "out"
    state.value = { is: "in", session }
    const back = isNew ? takeReturn() : undefined
    if (back !== undefined && place.peek().path === "/") go(back, "replace")
    // Notifies a tab that waits for the sign-in link to be opened.
    if (before.is === "unknown") announce()
  } catch (failure) {
    if (check !== checks) return
    if (failure instanceof Refused && failure.problem.status === 401) {
      unmark()
      if (state.peek().is !== "lost") state.value = { is: "out" }
    } else if (state.peek().is === "unknown") {
      state.value = { is: "unreachable", failure: failure instanceof Error ? failure : new Error(String(failure)) }
    } else setTimeout(() => check === checks && void look(failures + 1), pause(failures))
  }
}

signedOut.tell = () => {
  const now = state.peek()
  if (now.is === "in") state.value = { is: "lost", session: now.session }
}

accountChanged.tell = () => void look()

/** Notifies other tabs that the session changed. */
export const announce = () => others?.postMessage("changed")

/** Removes everything of the account from this tab. */
const leave = () => {
  checks++
  unfollow()
  client.clear()
  storeUnsavedFor(undefined)
  state.value = { is: "out" }
}

export const signOut = async () => {
  unfollow()
  await call("DELETE /api/auth/session").catch(() => undefined)
  unmark()
  deleteAllUnsaved()
  leave()
  others?.postMessage("signed-out")
}

/** The stream is opened after the first page has rendered. */
let following: (() => void) | undefined
effect(() => {
  following?.()
  following = undefined
  if (state.value.is === "in") following = later(follow)
  else if (state.value.is !== "unknown") unfollow()
})

/** Returns the account. Only valid on pages that require a session. */
export const account = (): SessionAnswer => {
  const now = state.value
  if (now.is === "in" || now.is === "lost") return now.session
  throw new Error("a page that needs an account was drawn without one")
}
