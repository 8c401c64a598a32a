/** Layout components of pages. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { place } from "../router/Router.ts"
import { scrollPage } from "../router/Scroll.ts"
import { Icon, type IconName } from "./Icon.tsx"

interface PageProps {
  readonly title: string
  /** Replaces the title in the heading. */
  readonly heading?: ComponentChildren
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly wide?: boolean
  readonly children: ComponentChildren
}

/** The path of the last page that took the focus. */
let focused: string | undefined

/** A page. Its heading takes the focus after navigation, and its title becomes the window title. */
export const Page = ({ title, heading, lead, actions, wide, children }: PageProps) => {
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Agent Identity Service`
  }, [title])
  useEffect(() => {
    const at = place.peek().path
    if (focused === at) return
    // The browser places the focus on the first page.
    if (focused !== undefined) head.current?.focus({ preventScroll: true })
    scrollPage()
    focused = at
  })
  return (
    <div class="page" {...(wide === true ? { "data-wide": "" } : {})}>
      <div class="page-head">
        <div class="grow">
          <h1 ref={head} tabIndex={-1}>
            {heading ?? title}
          </h1>
          {lead === undefined ? null : <div class="lead">{lead}</div>}
        </div>
        {actions === undefined ? null : <div class="bar">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

interface SectionProps {
  readonly title: string
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

export const Section = ({ title, lead, actions, children }: SectionProps) => (
  <section class="section">
    <div class="section-head">
      <div class="grow">
        <h2>{title}</h2>
        {lead === undefined ? null : <p>{lead}</p>}
      </div>
      {actions === undefined ? null : <div class="bar">{actions}</div>}
    </div>
    {children}
  </section>
)

/** A list of terms and values. */
export const Facts = ({
  facts,
}: {
  readonly facts: ReadonlyArray<readonly [string, ComponentChildren] | null | undefined | false>
}) => (
  <dl class="facts">
    {facts.map((fact) =>
      fact === null || fact === undefined || fact === false
        ? null
        : [<dt key={fact[0]}>{fact[0]}</dt>, <dd key={`${fact[0]}:`}>{fact[1]}</dd>],
    )}
  </dl>
)

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
  readonly action?: ComponentChildren
}

/** Shown in place of an empty list: what would be here, and how to start. */
export const Empty = ({ icon, title, children, action }: EmptyProps) => (
  <div class="empty">
    <Icon name={icon} />
    <strong>{title}</strong>
    {children === undefined ? null : <p>{children}</p>}
    {action}
  </div>
)

export const Note = ({
  tone,
  children,
}: {
  readonly tone?: "ok" | "warn" | "bad"
  readonly children: ComponentChildren
}) => (
  <div class="note" {...(tone && { "data-tone": tone })}>
    {children}
  </div>
)

export type Tone = "ok" | "warn" | "bad" | "busy" | "off"

/** A status as a dot and text, never colour alone. */
export const Status = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <span class="status" data-tone={tone}>
    {children}
  </span>
)

interface Tab {
  readonly to: string
  readonly text: string
}

/** Tabs of related pages. */
export const Tabs = ({ label, tabs }: { readonly label: string; readonly tabs: ReadonlyArray<Tab> }) => {
  const at = place.value.path
  // The tab with the longest matching path is current.
  const current = tabs
    .filter(({ to }) => at === to || at.startsWith(`${to}/`))
    .toSorted((one, other) => other.to.length - one.to.length)[0]
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ to, text }) => (
        <a key={to} href={`/console${to}`} {...(to === current?.to ? { "aria-current": "page" } : {})}>
          {text}
        </a>
      ))}
    </nav>
  )
}

interface SegmentsProps<V extends string> {
  readonly label: string
  readonly value: V
  readonly options: ReadonlyArray<readonly [V, string]>
  readonly onValue: (value: V) => void
}

/** A choice of one of a few options. */
export const Segments = <V extends string>({ label, value, options, onValue }: SegmentsProps<V>) => (
  <div class="segments" role="group" aria-label={label}>
    {options.map(([option, text]) => (
      <button key={option} type="button" aria-pressed={option === value} onClick={() => onValue(option)}>
        {text}
      </button>
    ))}
  </div>
)
