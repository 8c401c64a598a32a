/**
 * Extracts what a person wrote in a message: the text without quotes and without the signature. Quoting is a convention
 * and not a format, so it is recognised by the wording of mail programs. When in doubt, text is kept: a line that
 * merely looks like an attribution or a header field removes nothing. If nothing would remain (a message forwarded
 * without comment), the whole text is returned. The text has a limited length and is read in one pass.
 */

/** Maximum number of characters to read, of the text and of a line. The author's own text is usually at the top. */
const limits = { text: 128 * 1024, lines: 4_000, line: 1_000, attribution: 4, remark: 3 }

const quoted = /^[ \t]{0,3}>/
/**
 * The delimiter of RFC 3676 section 4.3. Many programs drop the space, so the lines below must also have the size of a
 * signature.
 */
const signature = /^-- ?$/
const bareSignature = { lines: 5, characters: 76 }

/** Verbs of `On … wrote:`, before or after the name, with a colon at the end. */
const verbs =
  /(?:\bwrote|\bschrieb|\bgeschrieben|a écrit|\bescribió|\bha scritto|\bschreef|\bescreveu|\bskrev|\bnapisał(?:\(a\)|a)?|\bnapsal(?:\(a\)|a)?|\bkirjoitti|\bírta|\ba scris|\byazdı|\bnapísal(?:\(a\)|a)?|пишет|написал(?:\(а\)|а)?|пише|έγραψε|写道|寫道|のメール|님이 작성|כתב|كتب)(?![\p{L}])/iu
const opening =
  /^[>*_\s]*(?:(?:On|Am|Le|El|Il|Op|Em|Den|W dniu|Dne|Dňa|Il giorno|În|Pe|Στις|На|пн|вт|ср|чт|пт|сб|вс)(?!\p{L})|\p{L}{2,12},? \d{1,2}\.|\d{1,4}[./年년-])/u
/** An author may write "on 3 May she wrote"; a mail program adds the year or the time of day. */
const dated = /(?<!\d)(?:\d{4}|\d{1,2}[:.h]\d{2}|\d{1,2}[./-]\d{1,2}[./-]\d{2})(?!\d)/
const address = /[^\s<>()[\]"',;:@]@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/u
/** Gmail in Japanese uses no verb but the date, the name and the address in angle brackets. */
const addressAtEnd = /<[^\s<>@]+@[^\s<>@]+>\s*[:：]\s*\**$/u

/** A line that announces another message. */
const divider = new RegExp(
  `^[\\s>]*(?:[-_=\\u2010-\\u2015]{2,}\\s*(?:${[
    "original message|original appointment|forwarded message|reply message|begin forwarded message",
    "ursprüngliche nachricht|originalnachricht|weitergeleitete nachricht|original-nachricht",
    "message d'origine|message original|message transféré|message initial",
    "mensaje original|mensaje reenviado|mensagem original|mensagem encaminhada",
    "messaggio originale|messaggio inoltrato|oorspronkelijk bericht|doorgestuurd bericht",
    "ursprungligt meddelande|vidarebefordrat meddelande|oprindelig meddelelse|opprinnelig melding|alkuperäinen viesti",
    "oryginalna wiadomość|wiadomość oryginalna|treść przekazanej wiadomości|původní zpráva|pôvodná správa",
    "исходное сообщение|пересылаемое сообщение|原始邮件|转发邮件|原始郵件|元のメッセージ|원본 메시지",
  ].join(
    "|",
  )})\\s*[-_=\\u2010-\\u2015]*|begin forwarded message:?|anfang der weitergeleiteten nachricht:?|début du message (?:transféré|réexpédié) ?:?)\\s*$`,
  "iu",
)
/** Outlook and mailing lists add a line of underscores above a quote; authors also use one between sections. */
const rule = /^[\s>]*_{20,}\s*$/
const listFooter = /mailing list|unsubscribe|https?:\/\/\S*(?:listinfo|lists?\.|groups)/i

/** The header fields that Outlook and similar programs show above a quote, by meaning. */
const fields: ReadonlyArray<readonly [meaning: string, names: string]> = [
  ["from", "from|von|de|da|van|från|fra|lähettäjä|od|от|kimden|feladó|发件人|寄件者|差出人|보낸 사람|מאת"],
  [
    "sent",
    "sent|date|gesendet|datum|envoyé|enviado|enviado el|fecha|data|inviato|verzonden|skickat|sendt|lähetetty|wysłano|odesláno|дата|отправлено|发送时间|日期|送信日時|보낸 날짜",
  ],
  ["to", "to|an|à|para|a|aan|till|til|vastaanottaja|do|komu|кому|收件人|收件者|宛先|받는 사람"],
  ["cc", "cc|kopie|copie|kopia|копия|抄送|副本"],
  [
    "subject",
    "subject|betreff|objet|asunto|assunto|oggetto|onderwerp|ämne|emne|aihe|temat|předmět|predmet|тема|主题|主旨|件名|제목",
  ],
]
const meanings = new Map(fields.flatMap(([meaning, names]) => names.split("|").map((name) => [name, meaning] as const)))
/** Returns the meaning of the header field at the start of a line. */
const meaningOf = (line: string): string | undefined => {
  const name = /^[\s>*]{0,10}([^:：*]{1,20}?)\s?\*?\s?[:：]/u.exec(line)?.[1]
  return name === undefined ? undefined : meanings.get(name.toLowerCase())
}

/** Remarks that phones and mail providers append: how the message was sent, and the name of a device or program. */
const remark =
  /^(?:sent (?:from|with|via)|get outlook for|von meinem \S+|gesendet (?:von|mit|über)|diese nachricht wurde von meinem|envoyé (?:de(?:puis)?|à partir de|avec)|télécharger outlook|enviado (?:desde|do|con|com)|obtener outlook|inviato (?:da|con)|verzonden (?:vanaf|met)|skickat (?:från|med)|sendt (?:fra|med)|lähetetty|wysłane? z|отправлено (?:с|из)|发自我的|從我的|iphoneから送信|나의 iphone)/iu
const sender =
  /i(?:phone|pad|pod)|apple|mac(?:book)?\b|android|galaxy|samsung|pixel|huawei|xiaomi|nokia|blackberry|phone|mobile?\b|mobil|handy|tablet|wireless|outlook|yahoo|proton|gmail|aol\b|gmx|web\.de|fastmail|tutanota|thunderbird|windows|\bmail (?:app|for|für|pour|para|per)\b|发自我的|從我的/iu
const remarkAtMost = 140

/** Returns the value of the header field in a line. */
const valueOf = (line: string): string => line.slice(line.search(/[:：]/u) + 1)

/**
 * Returns whether the header fields of another message begin at the line. Blank lines may separate them, and a list of
 * addresses may continue on the next line. Fields alone are not enough, since an author may write "From: Berlin, To:
 * Paris, Date: 3 May": an address, a subject after sender and date, or a divider above is required.
 */
const headerBlock = (lines: ReadonlyArray<string>, at: number, isDivided: boolean): boolean => {
  const first = meaningOf(lines[at]!)
  if (first === undefined) return false
  const found = new Set<string>()
  let strange = 0
  let isProven = isDivided
  for (let n = at; n < Math.min(lines.length, at + 12) && strange < 3; n++) {
    const meaning = meaningOf(lines[n]!)
    if (meaning === undefined) {
      strange++
      continue
    }
    if (meaning === "from" && address.test(valueOf(lines[n]!))) isProven = true
    if (meaning === "subject" && found.has("from") && found.has("sent")) isProven = true
    found.add(meaning)
    if (isProven && found.size >= 3) return true
  }
  return isDivided && found.has("from") && found.size >= 2
}

/** Returns whether another message begins at a line of underscores: header fields or the footer of a list follow. */
const ruled = (lines: ReadonlyArray<string>, at: number): boolean => {
  let next = at + 1
  while (next < lines.length && lines[next]!.trim() === "") next++
  return (
    next < lines.length &&
    (headerBlock(lines, next, true) || lines.slice(next, next + 3).some((line) => listFooter.test(line)))
  )
}

/** Returns whether the joined lines form an attribution of a mail program. */
const attributes = (first: string, joined: string): boolean => {
  if (addressAtEnd.test(joined) && dated.test(joined)) return opening.test(first)
  return verbs.test(joined) && ((opening.test(first) && dated.test(joined)) || address.test(first))
}

/** Returns the number of lines from `at` that form `On … wrote:`, which may be wrapped; 0 if they do not. */
const attribution = (lines: ReadonlyArray<string>, at: number): number => {
  let joined = ""
  for (let n = 0; n < limits.attribution && at + n < lines.length; n++) {
    const line = lines[at + n]!.trim()
    if (line === "") return 0
    joined = joined === "" ? line : `${joined} ${line}`
    if (!/[:：]\s*\**$/u.test(line)) continue
    if (!attributes(lines[at]!.trim(), joined)) return 0
    // The attribution is the shortest sequence that contains the date; the lines above it belong to the author.
    for (let later = at + n; later > at; later--) {
      const rest = lines.slice(later, at + n + 1).join(" ")
      if (dated.test(rest) && attributes(lines[later]!.trim(), rest)) return 0
    }
    return n + 1
  }
  return 0
}

/** Returns whether the following lines are quoted. */
const quotesFollow = (lines: ReadonlyArray<string>, at: number): boolean => {
  let next = at
  while (next < lines.length && lines[next]!.trim() === "") next++
  return next < lines.length && quoted.test(lines[next]!)
}

/** Returns whether a signature begins at the line. */
const signs = (lines: ReadonlyArray<string>, at: number): boolean => {
  const line = lines[at]!.trimStart()
  if (!signature.test(line)) return false
  if (line === "-- ") return true
  let count = 0
  for (let n = at + 1; n < lines.length && !quoted.test(lines[n]!) && attribution(lines, n) === 0; n++) {
    if (lines[n]!.trim() === "") continue
    if (++count > bareSignature.lines || lines[n]!.length > bareSignature.characters) return false
  }
  return true
}

export const textReply = (text: string): string => {
  const lines = text
    .slice(0, limits.text)
    .split(/\r?\n/, limits.lines)
    .map((line) => line.slice(0, limits.line))
  const kept: Array<string> = []
  /** A signature in the middle of a message is dropped up to the next quote. */
  let signed = false
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (quoted.test(line)) {
      signed = false
      continue
    }
    if (signed) continue
    if (kept.some((one) => one.trim() !== "") && signs(lines, at)) {
      signed = true
      continue
    }
    if (divider.test(line) || headerBlock(lines, at, false) || (rule.test(line) && ruled(lines, at))) break
    const count = attribution(lines, at)
    if (count > 0) {
      // The author may have written between the quotes. Without quotes, the rest is the other message if the
      // attribution contains its address and time.
      if (quotesFollow(lines, at + count)) {
        at += count - 1
        continue
      }
      const whole = lines.slice(at, at + count).join(" ")
      if (address.test(whole) && dated.test(whole)) break
    }
    kept.push(line)
  }
  return tidied(kept) || tidied(lines)
}

/** Removes appended remarks of phones, surrounding blank lines and repeated blank lines. */
const tidied = (lines: ReadonlyArray<string>): string => {
  const rest = [...lines]
  for (let count = 0; count < limits.remark; count++) {
    while (rest.length > 0 && rest.at(-1)!.trim() === "") rest.pop()
    const last = rest.at(-1)?.trim() ?? ""
    if (rest.length > 1 && last.length <= remarkAtMost && remark.test(last) && sender.test(last)) rest.pop()
  }
  return rest
    .join("\n")
    .replace(/\n(?:[ \t]*\n){2,}/g, "\n\n")
    .trim()
}
