/** Decodes text in a named character set. Never fails: an unknown set is read as UTF-8, and otherwise byte by byte. */
import iconv from "iconv-lite"
import * as Iso2022 from "./Iso2022.ts"

/**
 * Common names that no decoder lists, and sets of which the platform's decoder lacks characters in use: the Korean
 * syllables that Windows added, and the Big5 extensions of ETEN and Hong Kong.
 */
const aliases: Readonly<Record<string, string>> = {
  "": "utf-8",
  ascii: "utf-8",
  "us-ascii": "utf-8",
  "7bit": "utf-8",
  "8bit": "utf-8",
  utf8: "utf-8",
  cp932: "shift_jis",
  "windows-31j": "shift_jis",
  cp1252: "windows-1252",
  uhc: "cp949",
  "x-windows-949": "cp949",
  "ks_c_5601-1992": "cp949",
  "x-big5": "big5hkscs",
  "big5-eten": "big5hkscs",
  "x-big5-hkscs": "big5hkscs",
  "x-windows-950": "big5hkscs",
  cp950: "big5hkscs",
  "x-windows-936": "gbk",
  "x-mac-ce": "maccenteuro",
  "x-mac-centraleurroman": "maccenteuro",
  "x-mac-greek": "macgreek",
  "x-mac-turkish": "macturkish",
  "x-mac-icelandic": "maciceland",
  "x-mac-croatian": "maccroatian",
  "x-mac-romanian": "macromania",
  "x-mac-thai": "macthai",
}

/** Better decoders of the library, by the platform's name of the set. */
const better: Readonly<Record<string, string>> = { "euc-kr": "cp949", big5: "big5hkscs" }

/** Encodings of the library that are not character sets. */
const notCharsets = new Set(["hex", "base64", "binary"])

const escapeBased = {
  hz: /^(?:hz|hz-gb-2312)$/,
  iso2022: /^(?:iso-2022-(?:kr|cn|cn-ext|jp-.+)|csiso2022(?:kr|jp2)|cp5022[012]|x-windows-5022[012])$/,
}

/** Decoders of more than linear cost get at most this many bytes. */
const costly = { pattern: /^utf-?7/, bytes: 64 * 1024 }

/** The platform's decoders are native and linear; the library knows more sets. */
const platform = (name: string): TextDecoder | undefined => {
  try {
    return new TextDecoder(name, { ignoreBOM: false })
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
  if (escapeBased.iso2022.test(label)) return Iso2022.iso2022(bytes)
  if (escapeBased.hz.test(label)) return Iso2022.hz(bytes)
  // UTF-16 without a byte order in its name is decided by the byte order mark, which the library reads.
  const decoder = label === "utf-16" ? undefined : platform(label)
  const other = decoder === undefined ? label : better[decoder.encoding]
  if (other === undefined) return decoder!.decode(bytes)
  if (notCharsets.has(other.replace(/[^a-z0-9]/g, "")) || !iconv.encodingExists(other)) return unlabelled(bytes)
  return iconv.decode(costly.pattern.test(other) ? bytes.subarray(0, costly.bytes) : bytes, other)
}

/** Decodes UTF-8, or windows-1252 if almost nothing is valid UTF-8, since such senders name no set or a wrong one. */
const unlabelled = (bytes: Buffer): string => {
  const text = bytes.toString("utf8")
  if (text.includes("\ufffd") && !hasUtf8(bytes)) return platform("windows-1252")?.decode(bytes) ?? text
  return text.startsWith("\ufeff") ? text.slice(1) : text
}

/** Returns whether the bytes contain a multi-byte character. A body truncated within a character still does. */
const hasUtf8 = (bytes: Buffer): boolean => {
  for (let at = 0; at < bytes.length - 1; at++) {
    const byte = bytes[at]!
    if (byte >= 0xc2 && byte < 0xf5 && (bytes[at + 1]! & 0xc0) === 0x80) return true
  }
  return false
}
