/**
 * The limits of the frame that shows the HTML of a message, which leaves out what exceeds them. The review of a message
 * that waits for approval compares the message with these limits, because nobody may approve what the frame left out.
 */
export const frameLimits = {
  /** Characters of HTML. */
  html: 1_000_000,
  /** Characters of embedded images as `data:` URLs; an image can be referenced repeatedly. */
  pictures: 16 * 1024 * 1024,
  remoteImages: 200,
  links: 1000,
  /** Characters of the address of a link or a remote image. */
  address: 4000,
} as const
