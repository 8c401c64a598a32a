import { Segments } from "../ui/Page.tsx"
import { look } from "./Look.ts"
import { say } from "./texts.ts"

export const LookChoice = () => (
  <Segments
    label={say("look")}
    value={look.value}
    options={[
      ["system", say("look_system")],
      ["light", say("look_light")],
      ["dark", say("look_dark")],
    ]}
    onValue={(wanted) => (look.value = wanted)}
  />
)
