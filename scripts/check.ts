/**
 * Runs the type check, the linter and the format check, two at a time. Prints the output of each when it ends, and
 * exits with 1 if one failed.
 */
import { spawn } from "node:child_process"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.join(import.meta.dirname, "..")
const commands = [
  "tsc -p tsconfig.json --checkers 1",
  "tsc -p packages/console --checkers 1",
  "oxlint",
  "oxfmt --check .",
]

const run = (command: string) =>
  new Promise<boolean>((resolve) => {
    const bin = path.join(root, "node_modules", ".bin")
    const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env["PATH"]}` }
    const child = spawn(command, { cwd: root, env, shell: true, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.on("close", (code) => {
      if (code !== 0) console.error(`${command}\n${output}`)
      resolve(code === 0)
    })
  })

/** Returns whether every command succeeded. */
export const check = async (): Promise<boolean> => {
  const queue = [...commands]
  const results: Array<boolean> = []
  const next = async (): Promise<void> => {
    const command = queue.shift()
    if (command === undefined) return
    results.push(await run(command))
    return next()
  }
  await Promise.all([next(), next()])
  return results.every(Boolean)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit((await check()) ? 0 : 1)
