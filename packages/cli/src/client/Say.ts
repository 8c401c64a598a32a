/** What commands write out. Text of others is among it: whoever answers at the address, and what the service keeps for them. */
import { Effect } from "effect"
import { harmless } from "./Harmless.ts"

const write = (text: string) => Effect.sync(() => void process.stdout.write(`${text}\n`))

export const say = (text: string): Effect.Effect<void> => write(harmless(text))

/** The same value for machines; JSON leaves the controls above ASCII as they are. */
export const sayJson = (body: unknown): Effect.Effect<void> =>
  write(
    JSON.stringify(body).replace(
      /[\u007f-\u009f]/g,
      (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
  )
