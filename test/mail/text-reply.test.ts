/** Extracting what a person wrote from replies of mail programs. */
import { textReply } from "@svc/domain/mail/TextReply"
import { expect, it } from "@effect/vitest"

const written = "Yes, Thursday works.\n\nBring the slides, please."

const around: Readonly<Record<string, string>> = {
  "Gmail, with the attribution broken in two": `${written}\n\nOn Wed, Mar 12, 2025 at 2:02 PM Grace Hopper <\ngrace@example.org> wrote:\n\n> Does Thursday work?\n>\n> Grace\n`,
  "Gmail's HTML in words": `${written}\n\nOn Wed, Mar 12, 2025 at 2:02 PM Grace Hopper <grace@example.org> wrote:\n\nDoes Thursday work?\n\nGrace`,
  "Gmail in German": `${written}\n\nAm Mi., 12. März 2025 um 14:02 Uhr schrieb Grace Hopper <grace@example.org>:\n\n> Passt Donnerstag?\n`,
  "Gmail in French": `${written}\n\nLe mer. 12 mars 2025 à 14:02, Grace Hopper <grace@example.org> a écrit :\n\n> Jeudi, ça va ?\n`,
  Outlook:
    `${written}\n\nBest,\nAda\n`.replace("\n\nBest,\nAda\n", "") +
    `\n\nFrom: Grace Hopper <grace@example.org>\nSent: Wednesday, March 12, 2025 2:02 PM\nTo: Ada <ada@example.com>\nSubject: Thursday\n\nDoes Thursday work?`,
  "Outlook with a divider": `${written}\n\n-----Original Message-----\nFrom: Grace\n\nDoes Thursday work?`,
  "Outlook on the web": `${written}\n\n________________________________\nFrom: Grace Hopper <grace@example.org>\nSent: Wednesday\nTo: Ada\nSubject: Thursday\n\nDoes Thursday work?`,
  "Outlook in German": `${written}\n\nVon: Grace Hopper <grace@example.org>\nGesendet: Mittwoch, 12. März 2025 14:02\nAn: Ada <ada@example.com>\nBetreff: Donnerstag\n\nPasst Donnerstag?`,
  "Outlook in German, divided": `${written}\n\n-----Ursprüngliche Nachricht-----\nVon: Grace\n\nPasst Donnerstag?`,
  "Outlook in French": `${written}\n\nDe : Grace Hopper <grace@example.org>\nEnvoyé : mercredi 12 mars 2025 14:02\nÀ : Ada\nObjet : Jeudi\n\nJeudi, ça va ?`,
  "Outlook with bold fields": `${written}\n\n*From:* Grace Hopper <grace@example.org>\n*Sent:* Wednesday\n*To:* Ada\n*Subject:* Thursday\n\nDoes Thursday work?`,
  "Apple Mail": `${written}\n\n> On 12 Mar 2025, at 14:02, Grace Hopper <grace@example.org> wrote:\n> \n> Does Thursday work?\n`,
  "Apple Mail, on a phone": `${written}\n\nSent from my iPhone\n\n> On 12 Mar 2025, at 14:02, Grace Hopper <grace@example.org> wrote:\n> \n> \uFEFFDoes Thursday work?\n`,
  "Apple Mail in German, on a phone": `${written}\n\nVon meinem iPhone gesendet\n\n> Am 12.03.2025 um 14:02 schrieb Grace Hopper <grace@example.org>:\n> \n> Passt Donnerstag?\n`,
  Thunderbird: `${written}\n\n-- \nAda\nAnalytical Engines Ltd.\n\nOn 3/12/25 14:02, Grace Hopper wrote:\n> Does Thursday work?\n`,
  "Thunderbird in German": `${written}\n\nAm 12.03.25 um 14:02 schrieb Grace Hopper:\n> Passt Donnerstag?\n>\n`,
  "Thunderbird in French": `${written}\n\nLe 12/03/2025 à 14:02, Grace Hopper a écrit :\n> Jeudi ?\n`,
  Yahoo: `${written}\n\n Am Mittwoch, 12. März 2025 um 14:02:33 MEZ hat Grace <grace@example.org> Folgendes geschrieben: \n\nPasst Donnerstag?`,
  "a web mailer that names the time first": `${written}\n\nGesendet: Mittwoch, 12. März 2025 um 14:02 Uhr\nVon: "Grace" <grace@example.org>\nAn: ada@example.com\nBetreff: Donnerstag\n\nPasst Donnerstag?`,
  "a program below whose quote there is a signature":
    `${written}\n\nOn 3/12/25 14:02, Grace Hopper wrote:\n> Does Thursday work?\n\n-- \nAda\n`.replace(
      "\n\n-- \nAda\n",
      "",
    ),
  "Gmail in Japanese": `${written}\n\n2025年3月12日(水) 14:02 Grace Hopper <grace@example.org>:\n\n> 木曜日は？\n`,
  "Gmail in Japanese, without quote marks": `${written}\n\n2025年3月12日(水) 14:02 Grace Hopper <grace@example.org>:\n\n木曜日は？`,
  "Gmail in Korean": `${written}\n\n2025년 3월 12일 (수) 오후 2:02, Grace Hopper <grace@example.org>님이 작성:\n\n> 목요일?\n`,
  "Gmail in Chinese": `${written}\n\nGrace Hopper <grace@example.org> 于2025年3月12日周三 14:02写道：\n\n> 周四？\n`,
  "Gmail without a blank line above the attribution": `${written}\nOn Wed, Mar 12, 2025 at 2:02 PM Grace Hopper <grace@example.org>\nwrote:\n> Does Thursday work?\n`,
  Proton: `${written}\n\nSent with [Proton Mail](https://proton.me/mail/home) secure email.\n\nOn Wednesday, March 12th, 2025 at 2:02 PM, Grace Hopper <grace@example.org> wrote:\n\n> Does Thursday work?\n`,
  "Proton on a phone": `${written}\n\nSent from Proton Mail for iOS\n\nOn Wed, Mar 12, 2025 at 14:02, Grace Hopper <[grace@example.org](mailto:On Wed, Mar 12)> wrote:\n\n> Does Thursday work?\n`,
  "an older Proton": `${written}\n\nSent with ProtonMail Secure Email.\n\n‐‐‐‐‐‐‐ Original Message ‐‐‐‐‐‐‐\nOn Wednesday, March 12th, 2025 at 2:02 PM, Grace wrote:\n\nDoes Thursday work?`,
  "Outlook without addresses": `${written}\n\nFrom: Grace Hopper\nSent: Wednesday, March 12, 2025 2:02 PM\nTo: Ada\nSubject: Thursday\n\nDoes Thursday work?`,
  "a line of underscores above fields without a subject": `${written}\n\n________________________________\nFrom: Grace Hopper\nSent: Wednesday\nTo: Ada\n\nDoes Thursday work?`,
  "a mailing list": `${written}\n\n_______________________________________________\nengines mailing list -- engines@example.org\nTo unsubscribe send an email to engines-leave@example.org`,
  "a signature without the space of its separator": `${written}\n\n--\nAda\nAnalytical Engines Ltd.`,
  "a message passed on": `${written}\n\n---------- Forwarded message ---------\nFrom: Grace <grace@example.org>\nDate: Wed\nSubject: Thursday\n\nDoes Thursday work?`,
  "no quote at all": `${written}\n`,
  "lines that end as the network has them":
    `${written}\n\nOn 3/12/25 14:02, Grace Hopper wrote:\n> Does Thursday work?`.replaceAll("\n", "\r\n"),
}

for (const [name, text] of Object.entries(around)) {
  it(`a reply of ${name} is reduced to what was written`, () => {
    expect(textReply(text)).toBe(written)
  })
}

it("text between quotes is kept in its order", () => {
  const text = "On 3/12/25 14:02, Grace Hopper wrote:\n> Thursday?\nYes.\n> And the slides?\nI bring them.\n-- \nAda\n"
  expect(textReply(text)).toBe("Yes.\nI bring them.")
})

it("text that only resembles a quote is kept", () => {
  const texts = [
    "Von: hier bis dort.\nDann weiter.",
    "From: the beginning\nit was clear.",
    "As she wrote in 2020:\n\nAll is well.",
    "To: do today\nSubject: matters\nnothing else",
    "a -- b\n--\n",
    "Please book this:\nFrom: Berlin\nTo: Paris\nDate: 3 May\nThen send me the invoice.",
    "Please book this:\n\nVon: Berlin\nNach: Paris\nAn: 3. Mai\nDatum: 3. Mai\n\nDann die Rechnung.",
    "Subject: a trip\nFrom: Berlin\nTo: Paris\nDate: 3 May\n\nThen send me the invoice.",
    "From: Berlin\nTo: Paris\nDate: 3 May\nContact: ada@example.com\n\nThen send me the invoice.",
    "On 3 May 2025 the landlord wrote:\nPay by Friday.\n\nPlease pay him.",
    "On Monday she wrote:\n\nPay by Friday.\n\nPlease pay her.",
    "At 14:02 grace@example.org:\n\nsaid yes.",
    "grace@example.org wrote:\n\nthat it is fine.",
    "First part.\n\n________________________________\n\nSecond part: pay 500.",
    "First part.\n--\nSecond part, which is a good deal longer than a line of a signature would ever be: pay.",
    "First part.\n--\none\ntwo\nthree\nfour\nfive\nsix",
    "Both are done.\nSent from the warehouse on Monday: 500 pieces.",
    "Hello.\n\ngrace@example.org wrote:\n\nthat it is fine.",
    "Sent from my iPhone",
    "First part.\n\n______________________\nTo: Ada\nDate: Monday\n\nSecond part.",
    "Gesendet von Berlin aus, bitte prüfen.\nGesendet mit Rechnung 12.",
  ]
  for (const text of texts) expect(textReply(text)).toBe(text.replace(/\n--\n$/, "").trim())
})

it("lines directly above an attribution, and an attribution without a quote, are kept", () => {
  const attribution = "On Wed, Mar 12, 2025 at 2:02 PM Grace Hopper <grace@example.org> wrote:"
  expect(textReply(`I told her what he wrote:\nwait.\n${attribution}\n> Thursday?\n`)).toBe(
    "I told her what he wrote:\nwait.",
  )
  expect(textReply(`Before.\n\nOn Monday at noon she wrote:\n> Pay.\n\nPlease pay her.`)).toBe(
    "Before.\n\nOn Monday at noon she wrote:\n\nPlease pay her.",
  )
  expect(textReply(`Before.\n\nOn 12/03/2025 she wrote:\nPay.`)).toBe("Before.\n\nOn 12/03/2025 she wrote:\nPay.")
})

it("lines above an attribution are kept if they begin like one, and white space may separate it from the quote", () => {
  const attribution = "On Wed, Mar 12, 2025 at 2:02 PM Grace Hopper <grace@example.org> wrote:"
  expect(textReply(`On Monday we met.\n${attribution}\n> Thursday?\n`)).toBe("On Monday we met.")
  expect(textReply("On 3/12/25 14:02, Grace Hopper wrote:\n \t\n> Thursday?\nYes.")).toBe("Yes.")
})

it("a signature ends at the next quote", () => {
  // A signature stands below some text.
  expect(textReply("-- \nHello\n> quoted")).toBe("-- \nHello")
  expect(textReply("Yes.\n-- \nAda\n> The slides?\nI bring them.")).toBe("Yes.\nI bring them.")
  // Only a delimiter without its space must have the size of a signature.
  const lines = Array.from({ length: 9 }, (_, n) => `Line ${n}`).join("\n")
  expect(textReply(`Yes.\n-- \n${lines}`)).toBe("Yes.")
  expect(textReply(`Yes.\n--\n${lines}`)).toBe(`Yes.\n--\n${lines}`)
  const told = `Sent from my iPhone while I ${"waited and ".repeat(20)}waited.`
  expect(textReply(`Yes.\n${told}`)).toBe(`Yes.\n${told}`)
})

it("a message that only quotes is kept as a whole", () => {
  const text = "-----Original Message-----\nFrom: Grace\nDoes Thursday work?"
  expect(textReply(text)).toBe(text)
  expect(textReply("")).toBe("")
})

it("text crafted to be slow takes no longer than the longest text", () => {
  // Backtracking over the lines would take minutes.
  for (const line of ["On 1 ", "From: a\n", "> \n", "-- \n", "a:\n", "\n", "-", " ", "From:\n\n\n", "wrote ", "[:"]) {
    expect(textReply(line.repeat(1_000_000)).length).toBeLessThanOrEqual(128 * 1024)
  }
})

it.each([
  ["an address of the sender", "From: Grace <grace@example.org>\nTo: Ada\nDate: Monday", true],
  ["sender, date and subject", "From: Grace\nDate: Monday\nSubject: Numbers", true],
  ["subject before sender and date", "Subject: Numbers\nFrom: Grace\nDate: Monday", false],
  ["an address of the recipient only", "From: Berlin\nTo: ada@example.org\nDate: 3 May", false],
  ["two fields", "From: grace@example.org\nTo: Ada", false],
  ["no address", "From: Berlin\nTo: Paris\nDate: 3 May", false],
  ["two other lines between fields", "From: Grace <grace@example.org>\nTo: Ada,\nBob,\nCarl\nDate: Monday", true],
  ["three other lines between fields", "From: Grace <grace@example.org>\nis\nkind\n!\nTo: Ada\nDate: Monday", false],
  ["fields below a line and white space", "______________________\n \t\nFrom: Grace\nTo: Ada", true],
])("fields of another message begin a quote if they prove it: %s", (_, fields, isQuote) => {
  const text = `Yes.\n\n${fields}\n\nHow many?`
  expect(textReply(text)).toBe(isQuote ? "Yes." : text)
})

it("a bare signature has at most five lines of 76 characters", () => {
  const below = (lines: ReadonlyArray<string>) => textReply(`Yes.\n--\n \n${lines.join("\n")}`)
  expect(below(Array(5).fill("x".repeat(76)))).toBe("Yes.")
  expect(below(Array(6).fill("x"))).toContain("x")
  expect(below(["x".repeat(77)])).toContain("x")
})

it("a line that ends in an address and names no time is no attribution", () => {
  expect(textReply("On the list <grace@example.org>:\n> Numbers?\nThree.")).toBe(
    "On the list <grace@example.org>:\nThree.",
  )
})

it("at most 4,000 lines of 1,000 characters are read", () => {
  const lines = (count: number) => Array(count).fill("x").join("\n")
  expect(textReply(lines(4_001))).toBe(lines(4_000))
  expect(textReply("x".repeat(1_001))).toBe("x".repeat(1_000))
})
