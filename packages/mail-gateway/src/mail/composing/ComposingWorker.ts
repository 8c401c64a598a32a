/** The thread in which letters are written and read. */
import { parentPort } from "node:worker_threads"
import { parse } from "../ParsedMail.ts"
import type { Done, Task } from "./Tasks.ts"
import { write } from "./Writing.ts"

const port = parentPort
if (port === null) throw new Error("This module is the entry of a thread")

const done = async (task: Task): Promise<Done> => {
  try {
    return task._tag === "Write"
      ? { _tag: "Written", written: await write(task.letter) }
      : { _tag: "Read", parsed: parse(Buffer.from(task.raw.buffer, task.raw.byteOffset, task.raw.byteLength)) }
  } catch (error) {
    return { _tag: "Threw", message: error instanceof Error ? error.message : String(error) }
  }
}

port.on("message", (task: Task) => void done(task).then((answer) => port.postMessage(answer)))
