import type { ComponentChildren } from "preact"

interface TableProps {
  readonly label: string
  readonly heads: ReadonlyArray<string>
  /** What the last column is called, which has what can be done with a row; it is said, not shown. */
  readonly acts?: string
  /** Its rows lead somewhere, and are walked by `j` and `k`. */
  readonly list?: boolean
  readonly children: ComponentChildren
}

/** A table that scrolls by itself where it is too wide: its rows are its children. */
export const Table = ({ label, heads, acts, list, children }: TableProps) => (
  // What scrolls takes the focus, by itself where no row needs to have something in it that does.
  <div class="table" {...(list === true ? {} : { tabIndex: 0, role: "region" as const, "aria-label": label })}>
    <table aria-label={label}>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head}>{head}</th>
          ))}
          {acts === undefined ? null : (
            <th>
              <span class="hidden-text">{acts}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody {...(list === true ? { "data-list": "" } : {})}>{children}</tbody>
    </table>
  </div>
)
