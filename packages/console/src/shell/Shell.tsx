/** The layout around every page: navigation, notices, palette and shortcuts. */
import type { ComponentChildren, FunctionComponent } from "preact"
import { useEffect, useState } from "preact/hooks"
import { later } from "../client/Idle.ts"
import { connection } from "../client/Live.ts"
import { identityPath } from "../router/Paths.ts"
import { account, announce, look as lookForSession, signOut, state } from "../client/Session.ts"
import { maySignOut } from "../client/Unsaved.ts"
import { path } from "../router/Router.ts"
import { day } from "../texts/Texts.ts"
import { Button, ButtonLink, unreachableNotice } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Menu } from "../ui/Menu.tsx"
import { Status } from "../ui/Page.tsx"
import { Toasts } from "../ui/Toast.tsx"
import { useIdentities } from "./Identities.ts"
import { LookChoice } from "./Look.tsx"
import { palette } from "./Overlays.ts"
import { places } from "./places.ts"
import { Shortcuts } from "./Shortcuts.tsx"
import { StopButton, StoppedBar, StopWatch } from "./StopMail.tsx"
import { say } from "./texts.ts"

const isAt = (to: string) => (to === "/" ? path.value === "/" : path.value === to || path.value.startsWith(`${to}/`))

/** Number of Identities that the navigation lists. */
const listed = 9

/** The first Identities, with a link to the others. */
const Agents = () => {
  const identities = useIdentities().data?.identities ?? []
  if (identities.length === 0) return null
  return (
    <ul class="agents">
      {identities.slice(0, listed).map(({ handle, status }) => {
        const to = identityPath(handle)
        return (
          <li key={handle}>
            <a href={`/console${to}`} class="one-line" {...(isAt(to) ? { "aria-current": "true" } : {})}>
              <span class="dot" data-tone={status === "failed" ? "bad" : status === "ready" ? "ok" : "busy"} />
              <bdi class="one-line">{handle}</bdi>
              {status === "ready" ? null : (
                <span class="hidden-text">{say(status === "failed" ? "agent_failed" : "agent_busy")}</span>
              )}
            </a>
          </li>
        )
      })}
      {identities.length > listed ? (
        <li>
          <a href="/console/identities">{say("all_identities")}</a>
        </li>
      ) : null}
    </ul>
  )
}

const Navigation = () => {
  // The list of Identities moves the places below it, so they are not shown until its length is known.
  const { isPending } = useIdentities()
  return (
    <nav class="navigation" aria-label={say("navigation")}>
      <a class="brand" href="/console/">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span class="one-line">Agent Identity</span>
      </a>
      <ul class="places" {...(isPending ? { "data-pending": "" } : {})}>
        {places.map(({ to, key, icon }) => (
          <li key={to}>
            <a href={`/console${to}`} {...(isAt(to) ? { "aria-current": "page" } : {})}>
              <Icon name={icon} />
              <span class="one-line">{say(key)}</span>
            </a>
            {to === "/identities" ? <Agents /> : null}
          </li>
        ))}
      </ul>
    </nav>
  )
}

const Connection = () => {
  const now = connection.value
  return (
    <span class="connection">
      <Status tone={now === "live" ? "ok" : now === "offline" ? "bad" : "busy"}>{say(now)}</Status>
    </span>
  )
}

const AccountMenu = () => (
  <Menu label={say("account")} icon="person">
    <div class="menu-head">
      <span class="muted small one-line">{account().org.email}</span>
    </div>
    <a href="/console/settings">
      <Icon name="settings" />
      {say("settings")}
    </a>
    <a href="/docs/" target="_blank" rel="noopener">
      <Icon name="out" />
      {say("documentation")}
    </a>
    <hr />
    <div class="menu-head" data-stay>
      <LookChoice />
    </div>
    <hr />
    <button type="button" onClick={() => maySignOut() && void signOut()}>
      <Icon name="left" />
      {say("sign_out")}
    </button>
  </Menu>
)

const Bars = () => {
  const { tos } = account()
  return (
    <>
      <StoppedBar />
      {tos.current_version !== tos.accepted_version && !tos.gated && tos.effective_at !== null ? (
        <div class="shell-bar" data-tone="warn">
          <Icon name="warning" />
          <span class="grow">{say("terms_soon", { date: day(new Date(tos.effective_at)) })}</span>
          <ButtonLink small href="/console/settings/terms">
            {say("terms_read")}
          </ButtonLink>
        </div>
      ) : null}
    </>
  )
}

const Offline = () =>
  connection.value !== "offline" ? null : (
    <div class="toast" data-tone="warn" id={unreachableNotice}>
      <Icon name="warning" />
      <span class="grow">{say("offline_notice")}</span>
    </div>
  )

/** Shown when the session has ended while a page was open. Input on the page is kept. */
const Lost = () =>
  state.value.is !== "lost" ? null : (
    <Dialog title={say("lost_title")} firm onClose={() => undefined}>
      <p>{say("lost")}</p>
      <div class="actions">
        <Button
          onClick={() => {
            announce()
            state.value = { is: "out" }
          }}
        >
          {say("lost_leave")}
        </Button>
        <ButtonLink kind="primary" href="/auth/sign-in" target="_blank" autofocus>
          {say("sign_in")}
        </ButtonLink>
        <Button icon="again" onClick={() => void lookForSession()} aria-label={say("reload")} />
      </div>
    </Dialog>
  )

/** Loads the announcements after the page has rendered. */
const Spoken = () => {
  const [Heard, setHeard] = useState<FunctionComponent>()
  useEffect(
    () =>
      later(
        () =>
          void import("./EventAnnouncer.tsx").then((module) => setHeard(() => module.default)).catch(() => undefined),
      ),
    [],
  )
  return Heard === undefined ? null : <Heard />
}

export const Shell = ({ children }: { readonly children: ComponentChildren }) => (
  <>
    <a class="skip button" href="#content">
      {say("skip")}
    </a>
    <div class="shell">
      <Navigation />
      <div class="shell-main">
        <header class="top">
          <button type="button" class="palette-button" onClick={() => (palette.value = true)}>
            <Icon name="search" />
            <span class="one-line">{say("search")}</span>
            <kbd aria-hidden="true">Ctrl K</kbd>
          </button>
          <Connection />
          <StopButton />
          <AccountMenu />
        </header>
        <Bars />
        <main id="content">{children}</main>
      </div>
    </div>
    <Toasts>
      <Offline />
    </Toasts>
    <Shortcuts />
    <StopWatch />
    <Spoken />
    <Lost />
  </>
)
