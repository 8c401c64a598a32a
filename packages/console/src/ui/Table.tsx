import type { ComponentChildren } from "preact"

interface TableProps {
  readonly label: string
  readonly heads: ReadonlyArray<string>
  /** The name of the column with actions, for screen readers only. */
  readonly acts?: string
  /** Rows are links that `j` and `k` move between. */
  readonly list?: boolean
  readonly children: ComponentChildren
}

/** A table that scrolls horizontally if it is too wide. `children` are its rows. */
export const Table = ({ label, heads, acts, list, children }: TableProps) => (
  // A scrollable region without focusable rows must take the focus itself.
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
