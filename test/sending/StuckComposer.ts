/** A composing thread that certain words hang or crash, to test how the process reacts. */
import "@svc/mail-gateway/mail/composing/ComposingWorker"
import { parentPort } from "node:worker_threads"
import type { Task } from "@svc/mail-gateway/mail/composing/ComposingThread"

const asleep = new Int32Array(new SharedArrayBuffer(4))

// Runs after the thread's own listener, which responds later.
parentPort?.on("message", (task: Task) => {
  const text = task._tag === "Write" ? (task.letter.text ?? "") : ""
  // Sleeps in each turn to leave the CPU to others.
  if (text.includes("loop forever")) for (;;) Atomics.wait(asleep, 0, 0, 20)
  if (text.includes("end the thread")) process.exit(7)
})
