/** Records what this release writes. Run `node test/compatibility/record.ts` once per release (docs/upgrade.md). */
import { mkdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { apiVersion } from "@svc/domain/Version"
import { folder, record } from "./Golden.ts"

const file = path.join(folder, `${apiVersion}.json`)
const { frames, kept, shapes, version } = record(apiVersion)
const lines = (entries: ReadonlyArray<string>) => `\n${entries.join(",\n")}\n`
const members = (of: object) =>
  lines(Object.entries(of).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`))

mkdirSync(folder, { recursive: true })
// Writes one line per member, so that differences are readable.
writeFileSync(
  file,
  `{"version": ${JSON.stringify(version)},\n"frames": {${members(frames)}},\n"shapes": [${lines(shapes.map((shape) => JSON.stringify(shape)))}],\n"kept": {${members(kept)}}}\n`,
)
console.log(file)
