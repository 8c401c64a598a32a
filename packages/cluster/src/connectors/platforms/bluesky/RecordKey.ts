/**
 * The key of a post's record, made of the command's uuid: a command that comes again means the same record, so it makes
 * one post. It has the form of atproto's own keys, TIDs (https://atproto.com/specs/tid): 53 bits of microseconds and 10
 * of a clock's id, in base32 that sorts.
 */

const digits = "234567abcdefghijklmnopqrstuvwxyz"

/** `command` is a version 7 uuid: 48 bits of milliseconds, then chance. */
export const ofCommand = (command: string): string => {
  const bits = BigInt(`0x${command.replaceAll("-", "")}`)
  const millis = bits >> 80n
  const chance = bits & ((1n << 62n) - 1n)
  const micros = millis * 1_000n + (chance % 1_000n)
  let rest = ((micros & ((1n << 53n) - 1n)) << 10n) | ((chance / 1_000n) & 1_023n)
  let text = ""
  for (let place = 0; place < 13; place++) {
    text = digits[Number(rest & 31n)] + text
    rest >>= 5n
  }
  return text
}

/** When the command was given. */
export const millisOf = (command: string): number => Number.parseInt(command.replaceAll("-", "").slice(0, 12), 16)
