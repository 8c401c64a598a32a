/**
 * Generates the parts of the SDKs that follow from the contract: `node scripts/sdk.ts`. Types and calls come from the
 * OpenAPI document, the blocking client for Python from the asynchronous one, and the versions of the service and the SDKs
 * from `package.json`. A test checks that the files are current.
 */
import { readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { python } from "./sdk/Python.ts"
import { typeScript } from "./sdk/TypeScript.ts"

const root = path.resolve(import.meta.dirname, "..")

/** Returns the generated files with their texts. */
export const generate = (): ReadonlyMap<string, string> => {
  const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { readonly version: string }
  const folder = path.join(root, "packages", "sdk-python", "src", "agent_identity")
  return new Map([
    [
      path.join(root, "packages", "domain", "src", "Version.ts"),
      `/** The version of the API, the service and the command; scripts/sdk.ts copies it from package.json. */\nexport const apiVersion = ${JSON.stringify(version)}\n`,
    ],
    [path.join(root, "packages", "sdk", "src", "generated.ts"), typeScript()],
    ...python(folder, version).map(([name, text]) => [path.join(folder, name), text] as const),
  ])
}

if (import.meta.main) for (const [file, text] of generate()) writeFileSync(file, text)
