/** Text of other people is shown, not obeyed: a terminal would execute control characters. */
export const terminalText = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- these are the characters to remove
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd")
