export declare const buildOf: (
  name: string,
  sources: ReadonlyArray<string>,
) => { readonly cache: string; readonly dist: string; readonly wanted: () => string; readonly isBuilt: () => boolean }
