/** What a list shows of all there is: a choice that stands in the address's query, so that it can be kept and handed on. */
import { query, refine } from "../router/Router.ts"
import { Select } from "./Field.tsx"

interface FilterProps<V extends string> {
  /** Of the query's parameter. */
  readonly name: string
  readonly label: string
  /** The words for no choice. */
  readonly any: string
  readonly values: ReadonlyArray<V>
  /** The words for a value; itself where it has none. */
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
