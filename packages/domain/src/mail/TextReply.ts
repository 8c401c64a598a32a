/**
 * What a person wrote in a message: its text without what the mail program quoted below or between, and without the
 * signature. A convention, not a format, so it is told by how mail programs word it. Where nothing would be left (a message
 * passed on without a word), the whole text is what there is. One pass over the lines of a text of bounded length.
 */

/** Characters that are read, of the text and of one line; what a person wrote stands at the top. */
const limits = { text: 128 * 1024, lines: 4_000, line: 1_000, attribution: 4, remark: 3 }

const quoted = /^[ \t]{0,3}>/
/** RFC 3676 section 4.3; many programs lose the space. */
const signature = /^-- ?$/

/** `On … wrote:`: a verb with the name before or after it, at the end a colon. */
const verbs =
  /(?:\bwrote|\bschrieb|\bgeschrieben|a écrit|\bescribió|\bha scritto|\bschreef|\bescreveu|\bskrev|\bnapisał(?:\(a\)|a)?|\bnapsal(?:\(a\)|a)?|\bkirjoitti|\bírta|\ba scris|\byazdı|\bnapísal(?:\(a\)|a)?|пишет|написал(?:\(а\)|а)?|пише|έγραψε|写道|寫道|のメール|님이 작성|כתב|كتب)(?![\p{L}])/iu
const opening =
  /^(?:[>*_\s]*)(?:On|Am|Le|El|Il|Op|Em|Den|Le|W dniu|Dne|Dňa|Em|Il giorno|În|Pe|Στις|На|пн|вт|ср|чт|пт|сб|вс|\p{L}{2,12},? \d{1,2}\.|\d{1,4}[./年-])/u
const dated = /\d/

/** A line that says by itself that another message follows. */
const divider = new RegExp(
  `^[\\s>]*(?:[-_=]{2,}\\s*(?:${[
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
  )})\\s*[-_=]*|begin forwarded message:?|anfang der weitergeleiteten nachricht:?|début du message (?:transféré|réexpédié) ?:?|_{20,})\\s*$`,
  "iu",
)

/** The fields that Outlook and its like put above what they quote, by what they mean. */
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
/** What the field that a line begins with means. */
const meaningOf = (line: string): string | undefined => {
  const name = /^[\s>*]{0,10}([^:：*]{1,20}?)\s?\*?\s?[:：]/u.exec(line)?.[1]
  return name === undefined ? undefined : meanings.get(name.toLowerCase())
}

/** What phones put under what was written. */
const remark =
  /^(?:sent from (?:my|mail for|outlook|yahoo|proton|the)\b|get outlook for|von meinem \S+ gesendet|gesendet (?:von|mit|über)\b.{0,80}$|diese nachricht wurde von meinem|envoyé (?:de(?:puis)?|à partir de)\b|télécharger outlook|enviado desde|enviado do|obtener outlook|inviato da|verzonden vanaf|skickat från|sendt fra|lähetetty|wysłane z|отправлено с|发自我的|從我的|iphoneから送信|나의 iphone)/iu

/** Whether header fields begin at a line; blank lines may part them, and an address list may go on in the next line. */
const headerBlock = (lines: ReadonlyArray<string>, at: number): boolean => {
  const first = meaningOf(lines[at]!)
  if (first === undefined) return false
  const found = new Set([first])
  let strange = 0
  for (let n = at + 1; n < Math.min(lines.length, at + 12) && found.size < 3 && strange < 3; n++) {
    const meaning = meaningOf(lines[n]!)
    if (meaning === undefined) strange++
    else found.add(meaning)
  }
  return found.size >= 3 && (found.has("from") || found.has("sent"))
}

/** How many lines from `at` are `On … wrote:`, which may be broken into several; 0 where they are not. */
const attribution = (lines: ReadonlyArray<string>, at: number): number => {
  let joined = ""
  for (let n = 0; n < limits.attribution && at + n < lines.length; n++) {
    const line = lines[at + n]!.trim()
    if (line === "") return 0
    joined = joined === "" ? line : `${joined} ${line}`
    if (!/[:：]\s*\**$/u.test(line)) continue
    return verbs.test(joined) && (dated.test(joined) || joined.includes("@")) ? n + 1 : 0
  }
  return 0
}

/** Whether what follows is quoted line by line. */
const quotesFollow = (lines: ReadonlyArray<string>, at: number): boolean => {
  let next = at
  while (next < lines.length && lines[next]!.trim() === "") next++
  return next < lines.length && quoted.test(lines[next]!)
}

export const textReply = (text: string): string => {
  const lines = text
    .slice(0, limits.text)
    .split(/\r?\n/, limits.lines)
    .map((line) => line.slice(0, limits.line))
  const kept: Array<string> = []
  /** Of a signature in the middle of a message nothing is kept up to the next quote. */
  let signed = false
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (quoted.test(line)) {
      signed = false
      continue
    }
    if (signed) continue
    if (signature.test(line.trimStart()) && kept.some((one) => one.trim() !== "")) {
      signed = true
      continue
    }
    if (divider.test(line) || headerBlock(lines, at)) break
    const count = attribution(lines, at)
    if (count > 0) {
      // Quotes between which something may be written; else everything below is the other message.
      if (quotesFollow(lines, at + count)) {
        at += count - 1
        continue
      }
      if (opening.test(line)) break
    }
    kept.push(line)
  }
  return tidied(kept) || tidied(lines)
}

/** Without what phones add at the end, and without blank lines around and more than one between. */
const tidied = (lines: ReadonlyArray<string>): string => {
  const rest = [...lines]
  for (let count = 0; count < limits.remark; count++) {
    while (rest.length > 0 && rest.at(-1)!.trim() === "") rest.pop()
    if (rest.length > 1 && remark.test(rest.at(-1)!.trim())) rest.pop()
  }
  return rest
    .join("\n")
    .replace(/\n(?:[ \t]*\n){2,}/g, "\n\n")
    .trim()
}
