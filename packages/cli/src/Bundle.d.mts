/** The files of a bundle with size and time; paths are relative to the root. */
export interface Stamp {
  /** The folder of the bundle in {@link directory}. */
  readonly folder: string
  readonly sources: ReadonlyArray<readonly [path: string, mark: string]>
}

export const directory: string
export const stampFile: string
export const entries: Readonly<Record<"svc" | "Worker" | "ComposingWorker", string>>
export const markOf: (source: string) => string
export const current: () => string | undefined
