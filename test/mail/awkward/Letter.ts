/** Builds messages that programs really send, each awkward in one way, with the expected reading. */

/** The expected reading; omitted members are not compared. */
export interface Reading {
  readonly subject?: string
  /** Name and address of the author. */
  readonly from?: string
  readonly to?: ReadonlyArray<string>
  /** Ignores white space at line ends and at the end. */
  readonly text?: string
  /** File name, type and decoded bytes of each. */
  readonly attachments?: ReadonlyArray<readonly [filename: string | null, type: string, size: number]>
}

export interface Awkward {
  readonly raw: Buffer
  readonly reading: Reading
}

export const utf8 = (text: string) => Buffer.from(text, "utf8").toString("latin1")

export const lines = (...all: ReadonlyArray<string>) => all.join("\r\n")

export const letter = (reading: Reading, ...all: ReadonlyArray<string>): Awkward => ({
  raw: Buffer.from(`${lines(...all)}\r\n`, "latin1"),
  reading,
})

export const plain = (subject: string, ...head: ReadonlyArray<string>) =>
  lines("From: a@example.org", `Subject: ${subject}`, ...head, "", "x")

/** A message with one attachment that has these header fields. */
export const attached = (...head: ReadonlyArray<string>) =>
  lines(
    "From: a@example.org",
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=x",
    "",
    "--x",
    "Content-Type: text/plain",
    "",
    "see file",
    "--x",
    ...head,
    "",
    "QUJD",
    "--x--",
  )

export const file = (name: string, type = "application/pdf", size = 3) => [[name, type, size]] as const
