/** Text of others is shown, not obeyed: a terminal would take control characters for orders. */
// oxlint-disable-next-line no-control-regex -- they are what is taken out
export const harmless = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd")
