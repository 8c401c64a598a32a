/** The name of a platform in paths and rows. */
import { Schema } from "effect"
import { platformNames } from "./PlatformNames.ts"

export const PlatformName = Schema.Literals(platformNames)
export type PlatformName = typeof PlatformName.Type
