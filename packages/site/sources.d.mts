export declare const cache: string
export declare const dist: string
export declare const wanted: () => string
export declare const isBuilt: () => boolean
