/** The command palette: finds pages, Identities and actions among the data in memory. */
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { identityPath } from "../../router/Paths.ts"
import { signOut } from "../../client/Session.ts"
import { maySignOut } from "../../client/Unsaved.ts"
import { go } from "../../router/Router.ts"
import { Icon, type IconName } from "../../ui/Icon.tsx"
import { useIdentities } from "../Identities.ts"
import { places } from "../places.ts"
import { stopAllMail } from "../StopMail.tsx"
import { palette as open } from "../Overlays.ts"
import { say as sayInShell } from "../texts.ts"
import { say } from "./texts.ts"

interface Entry {
  readonly text: string
  readonly also?: string
  readonly icon: IconName
  readonly run: () => void
}

const fold = (text: string) => text.toLowerCase().normalize("NFD").replaceAll(/\p{M}/gu, "")

/** The rank of an entry without a match. */
const none = 9

const wordsOf = (text: string) =>
  fold(text)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")

/**
 * Ranks an entry: the text starts with what was typed, then each typed word starts a word of the text, of the text or its other
 * names, or is part of one.
 */
const rank = (entry: Entry, typed: string): number => {
  if (fold(entry.text).startsWith(typed)) return 0
  const wanted = wordsOf(typed)
  const own = wordsOf(entry.text)
  const all = [...own, ...wordsOf(entry.also ?? "")]
  const matches = (words: ReadonlyArray<string>, holds: (word: string, part: string) => boolean) =>
    wanted.every((part) => words.some((word) => holds(word, part)))
  if (matches(own, (word, part) => word.startsWith(part))) return 1
  if (matches(all, (word, part) => word.startsWith(part))) return 2
  return matches(all, (word, part) => word.includes(part)) ? 3 : none
}

const useEntries = (): ReadonlyArray<Entry> => {
  const handles = (useIdentities().data?.identities ?? []).map(({ handle }) => handle)
  const to = (path: string) => () => go(path)
  return [
    ...places.map(({ to: path, key, icon }) => ({
      text: sayInShell(key),
      ...(key === "settings" && { also: say("language_also") }),
      icon,
      run: to(path),
    })),
    ...handles.flatMap((handle): ReadonlyArray<Entry> => {
      const at = identityPath(handle)
      return [
        { text: handle, icon: "agents", run: to(at) },
        { text: say("mail_of", { handle }), also: handle, icon: "mail", run: to(`${at}/mail`) },
        { text: say("compose_as", { handle }), also: handle, icon: "send", run: to(`${at}/mail/compose`) },
        { text: say("webhooks_of", { handle }), also: handle, icon: "webhook", run: to(`${at}/webhooks`) },
        { text: say("tunnel_of", { handle }), also: handle, icon: "tunnel", run: to(`${at}/tunnel`) },
        { text: say("connectors_of", { handle }), also: handle, icon: "connector", run: to(`${at}/connectors`) },
        { text: say("programs_of", { handle }), also: handle, icon: "mail", run: to(`${at}/mail/programs`) },
        { text: say("profile_of", { handle }), also: handle, icon: "card", run: to(`${at}/profile`) },
        { text: say("proof_of", { handle }), also: say("proof_also"), icon: "check", run: to(`${at}/proof`) },
        { text: say("drafts_of", { handle }), icon: "mail", run: to(`${at}/mail/drafts`) },
        { text: say("approvals_of", { handle }), icon: "check", run: to(`${at}/mail/approvals`) },
        {
          text: say("mail_settings_of", { handle }),
          also: say("mail_settings_also"),
          icon: "settings",
          run: to(`${at}/mail/settings`),
        },
        {
          text: say("identity_settings_of", { handle }),
          also: say("identity_settings_also"),
          icon: "settings",
          run: to(`${at}/settings`),
        },
      ]
    }),
    { text: sayInShell("new_identity"), icon: "plus", run: to("/identities/new") },
    { text: sayInShell("stop_all"), also: say("stop_also"), icon: "stop", run: () => void stopAllMail() },
    { text: say("limits"), also: say("limits_also"), icon: "activity", run: to("/settings/limits") },
    { text: say("audit"), icon: "activity", run: to("/activity/audit") },
    { text: say("data"), icon: "settings", run: to("/settings/data") },
    { text: say("terms"), icon: "settings", run: to("/settings/terms") },
    { text: say("devices"), also: say("devices_also"), icon: "key", run: to("/keys/devices") },
    { text: sayInShell("documentation"), icon: "out", run: () => window.open("/docs/", "_blank", "noopener") },
    { text: sayInShell("sign_out"), icon: "out", run: () => maySignOut() && void signOut() },
  ]
}

const Palette = () => {
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState("")
  const [at, setAt] = useState(0)
  const entries = useEntries()
  const wanted = fold(typed.trim())
  const found = entries
    .map((entry, index) => ({ entry, index, rank: wanted === "" ? 0 : rank(entry, wanted) }))
    .filter(({ rank }) => rank < none)
    .toSorted((one, other) => one.rank - other.rank || one.index - other.index)
    .slice(0, 12)
    .map(({ entry }) => entry)
  const chosen = Math.min(at, found.length - 1)
  // Opens before the next key press, so that no key after Ctrl+K triggers a shortcut.
  useLayoutEffect(() => {
    const before = document.activeElement
    const element = dialog.current!
    element.showModal()
    return () => {
      element.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  const run = (entry: Entry | undefined) => {
    open.value = false
    entry?.run()
  }
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label={say("palette")}
      onCancel={(event) => (event.preventDefault(), (open.value = false))}
      onClick={(event) => {
        if (event.target === dialog.current) open.value = false
      }}
    >
      <div class="palette-head">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label={sayInShell("search")}
          aria-expanded="true"
          aria-controls="palette-list"
          {...(found.length > 0 ? { "aria-activedescendant": `palette-${chosen}` } : {})}
          placeholder={sayInShell("search")}
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={({ currentTarget }) => (setTyped(currentTarget.value), setAt(0))}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, chosen + 1))
            else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1))
            else if (event.key === "Enter") run(found[chosen])
            else return
            event.preventDefault()
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <ul id="palette-list" role="listbox" aria-label={say("palette")} class="palette-list">
        {found.map((entry, index) => (
          <li
            key={`${entry.text}${entry.icon}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => setAt(index)}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} />
            <span class="one-line">{entry.text}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 ? <p class="palette-none muted">{say("nothing_found")}</p> : null}
    </dialog>
  )
}

export default Palette
