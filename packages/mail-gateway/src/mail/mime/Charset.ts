/** Text of bytes in a named character set. Never fails: what no decoder knows is read as UTF-8, and else byte for byte. */
import iconv from "iconv-lite"
import * as Iso2022 from "./Iso2022.ts"

/**
 * Names that senders use and no decoder lists, and sets whose platform decoder lacks characters that others send: of Korean
 * the syllables that Windows added, of Big5 those of ETEN and of Hong Kong.
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

/** By the name that the platform has for the set. */
const better: Readonly<Record<string, string>> = { "euc-kr": "cp949", big5: "big5hkscs" }

/** What the library calls encodings too, which are none of text. */
const noText = new Set(["hex", "base64", "binary"])

const switched = {
  hz: /^(?:hz|hz-gb-2312)$/,
  iso2022: /^(?:iso-2022-(?:kr|cn|cn-ext|jp-.+)|csiso2022(?:kr|jp2)|cp5022[012]|x-windows-5022[012])$/,
}

/** Decoders whose work is not in proportion to the bytes get no more than this. */
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
  if (switched.iso2022.test(label)) return Iso2022.iso2022(bytes)
  if (switched.hz.test(label)) return Iso2022.hz(bytes)
  // Which way round it is, a mark at its beginning says, which the library reads.
  const decoder = label === "utf-16" ? undefined : platform(label)
  const other = decoder === undefined ? label : better[decoder.encoding]
  if (other === undefined) return decoder!.decode(bytes)
  if (noText.has(other.replace(/[^a-z0-9]/g, "")) || !iconv.encodingExists(other)) return unlabelled(bytes)
  return iconv.decode(costly.pattern.test(other) ? bytes.subarray(0, costly.bytes) : bytes, other)
}

/** UTF-8, or windows-1252 where hardly anything of it is: those senders name no set, or the wrong one. */
const unlabelled = (bytes: Buffer): string => {
  const text = bytes.toString("utf8")
  if (text.includes("\ufffd") && !hasUtf8(bytes)) return platform("windows-1252")?.decode(bytes) ?? text
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
