/** Who is signed in in this browser. The credential is a cookie that no script can read; here is only what it opens. */
import { effect, signal } from "@preact/signals"
import { type Answer, call, Refused, signedOut } from "./Client.ts"
import { later } from "./Later.ts"
import { follow, unfollow } from "./Live.ts"
import { client } from "./Queries.ts"
import { takeReturn } from "./Return.ts"
import { go, place } from "../router/Router.ts"
import { language, speak } from "../texts/Texts.ts"

type SessionAnswer = Answer<"GET /api/auth/session">

/** `lost`: it was there, and the service no longer takes it; what was typed stays in sight under a word about it. */
export type State =
  | { readonly is: "unknown" }
  | { readonly is: "unreachable"; readonly failure: Error }
  | { readonly is: "out" }
  | { readonly is: "lost"; readonly session: SessionAnswer }
  | { readonly is: "in"; readonly session: SessionAnswer }

export const state = signal<State>({ is: "unknown" })

const others = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("svc-session")
others?.addEventListener("message", () => void look())

/** Stands beside the session, which no script can read: without it nobody is signed in, and nobody need be asked. */
const mark = "svc_signed_in"
export const isMarked = () => document.cookie.split(/; */).includes(`${mark}=1`)
const unmark = () => (document.cookie = `${mark}=; Path=/; Max-Age=0; SameSite=Lax`)

/** Asks who is signed in. */
export const look = async (): Promise<void> => {
  if (!isMarked()) {
    if (state.peek().is === "unknown") state.value = { is: "out" }
    return
  }
  try {
    const session = await call("GET /api/auth/session")
    const before = state.peek()
    // Another account in the same browser: nothing of the one before may be seen.
    if ("session" in before && before.session.org.id !== session.org.id) client.clear()
    if (language.peek() !== session.org.language) speak(session.org.language)
    const isNew = before.is === "unknown" || before.is === "out"
    state.value = { is: "in", session }
    const back = isNew ? takeReturn() : undefined
    if (back !== undefined && place.peek().path === "/") go(back, "replace")
    // A tab that waits for its link to be opened notices.
    if (before.is === "unknown") announce()
  } catch (failure) {
    if (failure instanceof Refused && failure.problem.status === 401) {
      unmark()
      if (state.peek().is !== "lost") state.value = { is: "out" }
    } else if (state.peek().is === "unknown") {
      state.value = { is: "unreachable", failure: failure instanceof Error ? failure : new Error(String(failure)) }
    }
  }
}

signedOut.tell = () => {
  const now = state.peek()
  if (now.is === "in") state.value = { is: "lost", session: now.session }
}

/** Says to the other tabs that somebody signed in or out. */
export const announce = () => others?.postMessage("changed")

export const signOut = async () => {
  unfollow()
  await call("DELETE /api/auth/session").catch(() => undefined)
  unmark()
  client.clear()
  state.value = { is: "out" }
  announce()
}

/** Opens the Event stream once the first page is rendered. */
let following: (() => void) | undefined
effect(() => {
  following?.()
  following = undefined
  if (state.value.is === "in") following = later(follow)
  else if (state.value.is !== "unknown") unfollow()
})

/** The account of the pages that are only drawn for who is signed in. */
export const account = (): SessionAnswer => {
  const now = state.value
  if (now.is === "in" || now.is === "lost") return now.session
  throw new Error("a page that needs an account was drawn without one")
}
