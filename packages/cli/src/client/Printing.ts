/**
 * Prints the output of commands. It contains text of others: of the responding server, and of users and correspondents.
 */
import { Effect } from "effect"

export const terminalText = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- these are the characters to remove
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd")

const write = (text: string) => Effect.sync(() => void process.stdout.write(`${text}\n`))

export const say = (text: string): Effect.Effect<void> => write(terminalText(text))

/** Formats JSON for a terminal. JSON.stringify does not escape control characters above ASCII. */
const jsonOf = (body: unknown): string =>
  JSON.stringify(body).replace(
    /[\u007f-\u009f]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )

/** Prints a value as JSON for machines. */
export const sayJson = (body: unknown): Effect.Effect<void> => write(jsonOf(body))

/** Returns whether the command line requests JSON, or a part of it. Errors are then JSON as well. */
const wantsJson = (): boolean => {
  const words = process.argv.slice(2)
  const end = words.indexOf("--")
  return (end < 0 ? words : words.slice(0, end)).some((word) => /^--(?:json(?:=true)?|jq(?:=.*)?)$/s.test(word))
}

/** Writes an error to standard error: a line for people, or the problem as JSON where the command has `--json`. */
export const report = (message: string, problem: unknown): void => {
  const text = wantsJson() ? jsonOf(problem) : `svc: ${terminalText(message).replace(/\s+/g, " ")}`
  process.stderr.write(`${text}\n`)
}
