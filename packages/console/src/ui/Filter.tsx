/** A filter of a list, stored in the query of the page's address so that it can be bookmarked and shared. */
import { query, refine } from "../router/Router.ts"
import { Select } from "./Field.tsx"

interface FilterProps<V extends string> {
  /** The name of the query parameter. */
  readonly name: string
  readonly label: string
  /** The label for no filter. */
  readonly any: string
  readonly values: ReadonlyArray<V>
  /** Returns the label of a value. */
  readonly say?: (value: V) => string
}

export const Filter = <V extends string>({ name, label, any, values, say = (value) => value }: FilterProps<V>) => (
  <Select label={label} value={query.value.get(name) ?? ""} onValue={(value) => refine({ [name]: value })}>
    <option value="">{any}</option>
    {values.map((one) => (
      <option key={one} value={one}>
        {say(one)}
      </option>
    ))}
  </Select>
)
