/** SMTP refusals: the reply code, and the enhanced code of RFC 3463 before the text. */

export class Reply extends Error {
  readonly responseCode: number
  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

export const replies = {
  later: new Reply(451, "4.3.0 Temporary failure, try again later"),
  unknown: new Reply(550, "5.1.1 No such mailbox here"),
  tooManyUnknown: new Reply(421, "4.7.0 Too many unknown recipients"),
  bouncesOnly: new Reply(550, "5.7.1 This address only accepts delivery reports from mail servers"),
  tooManyBounces: new Reply(550, "5.7.1 Too many delivery reports for this message"),
  elsewhere: new Reply(550, "5.7.1 Relaying is not allowed for this domain"),
  parameter: new Reply(555, "5.5.4 Unknown parameter of RCPT"),
  notYet: new Reply(450, "4.2.1 The mailbox is being set up, try again later"),
  full: new Reply(452, "4.2.2 The mailbox is full"),
  tooLarge: new Reply(552, "5.3.4 The message is too large"),
  bare_line_break: new Reply(554, "5.6.0 Lines must end with CR LF, and only there"),
  nul: new Reply(554, "5.6.0 The message contains NUL"),
  short_lines: new Reply(554, "5.6.0 The message has too many empty lines"),
  header: new Reply(554, "5.6.0 The header is too large"),
  loop: new Reply(554, "5.4.6 Too many hops, mail loop detected"),
  busy: new Reply(421, "4.7.0 Too many connections, try again in a moment"),
  listed: new Reply(554, "5.7.1 The client's address is on a block list"),
  greylisted: new Reply(451, "4.7.1 Greylisted, try again in a few minutes"),
}
