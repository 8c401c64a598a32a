/**
 * The capabilities that the server announces (RFC 9051 section 6.1.1): only what works, and only the login mechanisms
 * that are currently allowed.
 */

export interface State {
  isSecure: boolean
  isCompressed: boolean
  isLoggedIn: boolean
  readonly allowsPlain: boolean
  readonly messageBytes: number
}

// Clients that only ask before login (Python's imaplib) must see IDLE here.
const always = ["IMAP4rev1", "IMAP4rev2", "SASL-IR", "LITERAL+", "ENABLE", "ID", "IDLE"]

const inside = [
  "NAMESPACE",
  "UIDPLUS",
  "UNSELECT",
  "CHILDREN",
  "LIST-EXTENDED",
  "LIST-STATUS",
  "SPECIAL-USE",
  "CREATE-SPECIAL-USE",
  "MOVE",
  "CONDSTORE",
  "QRESYNC",
  "ESEARCH",
  "SEARCHRES",
  "WITHIN",
  "SORT",
  "ESORT",
  "THREAD=REFERENCES",
  "THREAD=ORDEREDSUBJECT",
  "QUOTA",
  "QUOTA=RES-STORAGE",
  "OBJECTID",
  "STATUS=SIZE",
  "PREVIEW",
  "UTF8=ACCEPT",
  "BINARY",
]

export const mayLogIn = ({ isSecure, allowsPlain }: State): boolean => isSecure || allowsPlain

export const write = (state: State): string => {
  if (state.isLoggedIn) {
    const more = [`APPENDLIMIT=${state.messageBytes}`, ...(state.isCompressed ? [] : ["COMPRESS=DEFLATE"])]
    return [...always, ...inside, ...more].join(" ")
  }
  const login = mayLogIn(state) ? ["AUTH=PLAIN", "AUTH=LOGIN", "AUTH=OAUTHBEARER"] : ["LOGINDISABLED"]
  return [...always, ...(state.isSecure ? [] : ["STARTTLS"]), ...login].join(" ")
}

export const code = (state: State): string => `CAPABILITY ${write(state)}`
