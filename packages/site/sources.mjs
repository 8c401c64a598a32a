// The source files of the documentation site, and its build.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { buildOf } from "../../scripts/Build.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const font = join(here, "../console/src/ui/fonts")

export const { cache, dist, wanted, isBuilt } = buildOf("site", [here, join(here, "../../docs"), font])
