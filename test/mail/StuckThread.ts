/** A judging thread that some words of a message stop, or end, as no message should: for what the process does then. */
import "@svc/mail-gateway/mail/judging/Worker"
import { parentPort } from "node:worker_threads"
import type { ToThread } from "@svc/mail-gateway/mail/judging/Protocol"

const asleep = new Int32Array(new SharedArrayBuffer(4))

// After the thread's own listener, which has begun by then and answers later.
parentPort?.on("message", (message: ToThread) => {
  if (message._tag !== "Judge") return
  const text = Buffer.from(message.raw).toString("latin1")
  // It sleeps at each turn: others on this machine have something to do.
  if (text.includes("loop for ever")) for (;;) Atomics.wait(asleep, 0, 0, 20)
  if (text.includes("end the thread")) process.exit(7)
})
