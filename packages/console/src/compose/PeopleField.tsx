/** A field for recipients, each with its delivery permission. */
import { useId, useState } from "preact/hooks"
import { Icon } from "../ui/Icon.tsx"
import { addressesIn, isRefused, type Judged } from "./recipients.ts"
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
  /** Suggested addresses. */
  readonly known: ReadonlyArray<string>
  readonly autofocus?: boolean
}

export const PeopleField = ({ label, value, judged, onValue, known, autofocus }: PeopleProps) => {
  const id = useId()
  const [typed, setTyped] = useState("")
  const take = (text: string) => {
    const added = addressesIn(text).filter((address) => !value.includes(address))
    if (added.length > 0) onValue([...value, ...added])
    setTyped("")
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
          inputMode="email"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          list={`${id}-known`}
          value={typed}
          ref={(element) => {
            if (autofocus === true && element !== null && !element.dataset["seen"]) {
              element.dataset["seen"] = "1"
              element.focus()
            }
          }}
          onInput={({ currentTarget, inputType }) => {
            const text = currentTarget.value
            // A chosen suggestion arrives as a whole; a separator completes an address.
            if (
              /[,;\n]/.test(text) ||
              inputType === "insertReplacementText" ||
              (inputType === undefined && known.includes(text))
            )
              take(text)
            else setTyped(text)
          }}
          onPaste={(event) => {
            const text = event.clipboardData?.getData("text") ?? ""
            if (addressesIn(text).length < 2) return
            event.preventDefault()
            take(text)
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
              event.preventDefault()
              take(typed)
            } else if (event.key === " " && typed.includes("@")) {
              event.preventDefault()
              take(typed)
            } else if (event.key === "Backspace" && typed === "" && value.length > 0) onValue(value.slice(0, -1))
          }}
          onBlur={() => take(typed)}
        />
        <datalist id={`${id}-known`}>
          {known
            .filter((address) => !value.includes(address))
            .slice(0, 50)
            .map((address) => (
              <option key={address} value={address} />
            ))}
        </datalist>
      </div>
    </div>
  )
}
