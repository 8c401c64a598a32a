/** A verdict worker that certain words in a message block or end, to test the reaction of the process. */
import "@svc/mail-gateway/mail/judging/Worker"
import { parentPort } from "node:worker_threads"
import type { ToThread } from "@svc/mail-gateway/mail/judging/VerdictWorker"

const asleep = new Int32Array(new SharedArrayBuffer(4))

// After the worker's own listener, which started before and responds later.
parentPort?.on("message", (message: ToThread) => {
  if (message._tag !== "Judge") return
  const text = Buffer.from(message.raw).toString("latin1")
  // Sleeps at each turn, so that other work on the machine continues.
  if (text.includes("loop forever")) for (;;) Atomics.wait(asleep, 0, 0, 20)
  if (text.includes("end the thread")) process.exit(7)
})
