/** The list of keyboard shortcuts. */
import { Dialog } from "../../ui/Dialog.tsx"
import { Check } from "../../ui/Field.tsx"
import { enableLetters, help, letters } from "../Overlays.ts"
import { say } from "./texts.ts"

const Keys = ({ of, keys }: { readonly of: string; readonly keys: ReadonlyArray<string> }) => (
  <div class="bar spread">
    <span>{of}</span>
    <span class="bar">
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  </div>
)

const Help = () => {
  return (
    <Dialog title={say("shortcuts")} onClose={() => (help.value = false)}>
      <div class="stack">
        <Keys of={say("keys_palette")} keys={["Ctrl/⌘", "K"]} />
        <Keys of={say("keys_search")} keys={["/"]} />
        <Keys of={say("keys_go")} keys={["g", "h i a v k s"]} />
        <Keys of={say("keys_list")} keys={["j", "k"]} />
        <Keys of={say("keys_create")} keys={["c"]} />
        <h3>{say("keys_mail")}</h3>
        <Keys of={say("keys_reply")} keys={["r", "a", "f"]} />
        <Keys of={say("keys_compose")} keys={["c"]} />
        <Keys of={say("keys_archive")} keys={["e"]} />
        <Keys of={say("keys_delete")} keys={["#"]} />
        <Keys of={say("keys_flag")} keys={["s"]} />
        <Keys of={say("keys_unread")} keys={["u"]} />
        <Keys of={say("keys_select")} keys={["x"]} />
        <Keys of={say("keys_help")} keys={["?"]} />
        <Check checked={letters.value} onValue={enableLetters}>
          {say("keys_single")}
        </Check>
      </div>
    </Dialog>
  )
}

export default Help
