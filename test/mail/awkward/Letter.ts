/**
 * What letters are made of that programs really write, each awkward in one way, with what a reader should make of it.
 * Strings stand for bytes (latin1); text that is UTF-8 on the wire goes through `utf8`.
 */

/** What is said of a letter; what is left out does not matter here. */
export interface Reading {
  readonly subject?: string
  /** Name and address of the author. */
  readonly from?: string
  readonly to?: ReadonlyArray<string>
  /** White space at line ends and at the end left aside. */
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

/** A letter with one attachment whose header fields are given. */
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
