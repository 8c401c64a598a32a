/** The entry point of the thread that composes and parses messages. */
import { parentPort } from "node:worker_threads"
import { parse } from "../ParsedMail.ts"
import * as DraftMessage from "./DraftMessage.ts"
import { rewrite } from "./MessageRewriter.ts"
import type { Done, Task } from "./ComposingThread.ts"
import { write } from "./MessageWriter.ts"

const port = parentPort
if (port === null) throw new Error("This module is the entry of a thread")

const bytes = (raw: Uint8Array) => Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)

const work = async (task: Task): Promise<Done> => {
  switch (task._tag) {
    case "Write":
      return { _tag: "Written", written: await write(task.letter) }
    case "Rewrite":
      return { _tag: "Rewritten", outcome: await rewrite(task.manuscript) }
    case "Read":
      return { _tag: "Read", parsed: parse(bytes(task.raw)) }
    case "Picture":
      return { _tag: "Pictured", raw: await DraftMessage.write(task.picture) }
    case "Draft":
      return { _tag: "Drafted", mail: DraftMessage.read(bytes(task.raw)) }
  }
}

const done = async (task: Task): Promise<Done> => {
  try {
    return await work(task)
  } catch (error) {
    return { _tag: "Threw", message: error instanceof Error ? error.message : String(error) }
  }
}

port.on("message", (task: Task) => void done(task).then((answer) => port.postMessage(answer)))
