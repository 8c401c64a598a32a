/** A composing thread that some words of a letter stop, or end, as no letter should: for what the process does then. */
import "@svc/mail-gateway/mail/composing/ComposingWorker"
import { parentPort } from "node:worker_threads"
import type { Task } from "@svc/mail-gateway/mail/composing/Tasks"

// After the thread's own listener, which has begun by then and answers later.
parentPort?.on("message", (task: Task) => {
  const text = task._tag === "Write" ? (task.letter.text ?? "") : ""
  // oxlint-disable-next-line no-empty
  if (text.includes("loop for ever")) for (;;) {}
  if (text.includes("end the thread")) process.exit(7)
})
