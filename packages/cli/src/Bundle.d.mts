/** What was bundled: paths below the root, with their size and time. */
export interface Stamp {
  /** The folder of the bundle, below {@link directory}. */
  readonly folder: string
  readonly sources: ReadonlyArray<readonly [path: string, mark: string]>
}

export const directory: string
export const stampFile: string
export const entries: Readonly<Record<"svc" | "Worker" | "ComposingWorker", string>>
export const markOf: (source: string) => string
export const current: () => string | undefined
