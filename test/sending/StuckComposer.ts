/** A composing thread that some words of a letter stop, or end, as no letter should: for what the process does then. */
import "@svc/mail-gateway/mail/composing/ComposingWorker"
import { parentPort } from "node:worker_threads"
import type { Task } from "@svc/mail-gateway/mail/composing/Tasks"

const asleep = new Int32Array(new SharedArrayBuffer(4))

// After the thread's own listener, which has begun by then and answers later.
parentPort?.on("message", (task: Task) => {
  const text = task._tag === "Write" ? (task.letter.text ?? "") : ""
  // It sleeps at each turn: others on this machine have something to do.
  if (text.includes("loop for ever")) for (;;) Atomics.wait(asleep, 0, 0, 20)
  if (text.includes("end the thread")) process.exit(7)
})
