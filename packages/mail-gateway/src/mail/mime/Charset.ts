/** Text of bytes in a named character set. Never fails: what no decoder knows is read as UTF-8, and else byte for byte. */
import iconv from "iconv-lite"

/** Names that senders use and no decoder lists. */
const aliases: Readonly<Record<string, string>> = {
  "": "utf-8",
  ascii: "utf-8",
  "us-ascii": "utf-8",
  "7bit": "utf-8",
  "8bit": "utf-8",
  utf8: "utf-8",
  cp932: "shift_jis",
  "windows-31j": "shift_jis",
  "ks_c_5601-1987": "euc-kr",
  cp1252: "windows-1252",
}

/** Decoders whose work is not in proportion to the bytes get no more than this. */
const costly = { pattern: /^utf-?7/, bytes: 64 * 1024 }

/** The platform's decoders are native and linear; the library knows more sets. */
const platform = (bytes: Uint8Array, name: string): string | undefined => {
  try {
    return new TextDecoder(name, { ignoreBOM: false }).decode(bytes)
  } catch {
    return undefined
  }
}

export const charset = (bytes: Buffer, name: string): string => {
  const trimmed = name.trim().toLowerCase().slice(0, 40)
  const label = Object.hasOwn(aliases, trimmed)
    ? aliases[trimmed]!
    : trimmed.replace(/^(?:win|cp)-?(125\d)$/, "windows-$1")
  if (label === "utf-8") return unlabelled(bytes)
  // Which way round it is, a mark at its beginning says, which the library reads.
  const decoded = label === "utf-16" ? undefined : platform(bytes, label)
  if (decoded !== undefined) return decoded
  if (!iconv.encodingExists(label)) return unlabelled(bytes)
  return iconv.decode(costly.pattern.test(label) ? bytes.subarray(0, costly.bytes) : bytes, label)
}

/** UTF-8, or windows-1252 where hardly anything of it is: those senders name no set, or the wrong one. */
const unlabelled = (bytes: Buffer): string => {
  const text = bytes.toString("utf8")
  if (text.includes("\ufffd") && !hasUtf8(bytes)) return platform(bytes, "windows-1252") ?? text
  return text.startsWith("\ufeff") ? text.slice(1) : text
}

/** Whether the bytes hold a character of several bytes; a body cut off in one still does. */
const hasUtf8 = (bytes: Buffer): boolean => {
  for (let at = 0; at < bytes.length - 1; at++) {
    const byte = bytes[at]!
    if (byte >= 0xc2 && byte < 0xf5 && (bytes[at + 1]! & 0xc0) === 0x80) return true
  }
  return false
}
