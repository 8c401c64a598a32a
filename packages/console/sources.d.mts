export const cache: string
export const dist: string
export const wanted: () => string
export const isBuilt: () => boolean
export const shared: ReadonlyArray<string>
