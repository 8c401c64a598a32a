/** A field for recipients, each with its delivery permission, completed from known addresses. */
import { useId, useState } from "preact/hooks"
import { Icon } from "../ui/Icon.tsx"
import { addressesIn, isRefused, type Judged, type Known, suggestionsFor } from "./recipients.ts"
import { say } from "./texts.ts"

const Chip = ({ of, onDrop }: { readonly of: Judged; readonly onDrop: () => void }) => {
  const { address, is } = of
  return (
    <li class="tag chip" {...(isRefused(of) ? { "data-tone": "bad" } : {})}>
      {isRefused(of) ? <Icon name="warning" /> : null}
      <bdi class="one-line">{address}</bdi>
      {is === "unknown" ? null : <span class="hidden-text">{say(`is_${is}`)}</span>}
      <button type="button" aria-label={say("drop", { address })} onClick={onDrop}>
        <Icon name="cross" />
      </button>
    </li>
  )
}

interface PeopleProps {
  readonly label: string
  readonly value: ReadonlyArray<string>
  readonly judged: ReadonlyArray<Judged>
  readonly onValue: (value: ReadonlyArray<string>) => void
  readonly known: ReadonlyArray<Known>
  readonly autofocus?: boolean
}

export const PeopleField = ({ label, value, judged, onValue, known, autofocus }: PeopleProps) => {
  const id = useId()
  const [typed, setTyped] = useState("")
  /** The suggestion that the arrow keys chose; undefined if they were not used. */
  const [chosen, setChosen] = useState<number>()
  const [isOpen, setOpen] = useState(false)
  const suggested = isOpen ? suggestionsFor(typed, known, value) : []
  const active = chosen === undefined ? 0 : Math.min(chosen, suggested.length - 1)
  const type = (text: string) => {
    setTyped(text)
    setChosen(undefined)
    setOpen(true)
  }
  const take = (text: string) => {
    const added = addressesIn(text).filter((address) => !value.includes(address))
    if (added.length > 0) onValue([...value, ...added])
    setTyped("")
    setChosen(undefined)
    setOpen(false)
  }
  /** A complete address is taken as typed, so that a longer one never replaces it unnoticed. */
  const completed = () => {
    const isWhole = /^[^\s@]+@[^\s@]+\.[^\s@.]{2,}$/.test(typed.trim())
    return isWhole && chosen === undefined ? undefined : suggested[active]?.address
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey
    if (event.key === "Enter" && !hasModifier) {
      event.preventDefault()
      take(completed() ?? typed)
    } else if (
      event.key === "Tab" &&
      !event.shiftKey &&
      !hasModifier &&
      typed.trim() !== "" &&
      completed() !== undefined
    ) {
      event.preventDefault()
      take(completed()!)
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && suggested.length > 0) {
      event.preventDefault()
      const step = event.key === "ArrowDown" ? 1 : -1
      setChosen((active + step + suggested.length) % suggested.length)
    } else if (event.key === "Escape" && suggested.length > 0) {
      event.preventDefault()
      event.stopPropagation()
      setOpen(false)
    } else if (event.key === " " && typed.includes("@")) {
      event.preventDefault()
      take(typed)
    } else if (event.key === "Backspace" && typed === "" && value.length > 0) onValue(value.slice(0, -1))
  }
  return (
    <div class="people">
      <label for={id}>{label}</label>
      <div class="people-box">
        <ul class="people-chips" aria-label={label}>
          {value.map((address) => (
            <Chip
              key={address}
              of={judged.find((one) => one.address === address) ?? { address, is: "unknown" }}
              onDrop={() => onValue(value.filter((one) => one !== address))}
            />
          ))}
        </ul>
        <input
          id={id}
          type="text"
          role="combobox"
          aria-expanded={suggested.length > 0}
          aria-controls={`${id}-known`}
          aria-autocomplete="list"
          {...(suggested.length > 0 && { "aria-activedescendant": `${id}-${active}` })}
          inputMode="email"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={typed}
          ref={(element) => {
            if (autofocus === true && element !== null && !element.dataset["seen"]) {
              element.dataset["seen"] = "1"
              element.focus()
            }
          }}
          onInput={({ currentTarget: { value: text } }) => (/[,;\n]/.test(text) ? take(text) : type(text))}
          onPaste={(event) => {
            const text = event.clipboardData?.getData("text") ?? ""
            if (addressesIn(text).length < 2) return
            event.preventDefault()
            take(text)
          }}
          onKeyDown={onKeyDown}
          onBlur={() => take(typed)}
        />
      </div>
      <ul
        class="people-known"
        id={`${id}-known`}
        role="listbox"
        aria-label={say("known")}
        hidden={suggested.length === 0}
      >
        {suggested.map(({ address, name }, index) => (
          <li
            key={address}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active}
            // Keeps the focus in the field, which would otherwise take the incomplete text.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(address)}
          >
            {name === null ? null : <bdi class="one-line">{name}</bdi>}
            <bdi class="one-line muted">{address}</bdi>
          </li>
        ))}
      </ul>
    </div>
  )
}
