/**
 * The part of better-sqlite3 that the PDS uses (through kysely), over Node's own SQLite. The native module would have to
 * be compiled, or fetched from elsewhere than the registry; a machine that runs these tests may have neither.
 */
"use strict"
const { DatabaseSync } = require("node:sqlite")

/** The names that the PDS tells errors apart by. https://www.sqlite.org/rescode.html */
const codes = {
  5: "SQLITE_BUSY",
  261: "SQLITE_BUSY_RECOVERY",
  517: "SQLITE_BUSY_SNAPSHOT",
  773: "SQLITE_BUSY_TIMEOUT",
  1555: "SQLITE_CONSTRAINT_PRIMARYKEY",
  2067: "SQLITE_CONSTRAINT_UNIQUE",
}

const named = (run) => {
  try {
    return run()
  } catch (error) {
    if (typeof error.errcode === "number") error.code = codes[error.errcode] ?? `SQLITE_ERROR_${error.errcode}`
    throw error
  }
}

/** Rows are plain objects and bytes are buffers there. */
const plain = (row) => {
  const made = {}
  for (const [name, value] of Object.entries(row)) {
    made[name] = value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value
  }
  return made
}

class Statement {
  #statement
  constructor(statement) {
    this.#statement = statement
    this.reader = statement.columns().length > 0
  }
  all(parameters = []) {
    return named(() => this.#statement.all(...parameters)).map(plain)
  }
  get(parameters = []) {
    const row = named(() => this.#statement.get(...parameters))
    return row === undefined ? undefined : plain(row)
  }
  run(parameters = []) {
    return named(() => this.#statement.run(...parameters))
  }
  *iterate(parameters = []) {
    for (const row of this.#statement.iterate(...parameters)) yield plain(row)
  }
}

class Database {
  #database
  constructor(location, { timeout = 5_000 } = {}) {
    this.name = location
    this.#database = named(() => new DatabaseSync(location, { timeout }))
  }
  prepare(text) {
    return new Statement(named(() => this.#database.prepare(text)))
  }
  exec(text) {
    named(() => this.#database.exec(text))
    return this
  }
  pragma(text) {
    return this.prepare(`PRAGMA ${text}`).all()
  }
  close() {
    if (this.#database.isOpen) this.#database.close()
    return this
  }
}

module.exports = Database
