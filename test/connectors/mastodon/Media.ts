/** Uploaded images of {@link module:Server}, whose processing may take a while. */
import { ErrorResponse } from "./Exchange.ts"

interface Picture {
  readonly type: string
  readonly size: number
  readonly description: string | null
}

export class Media {
  readonly pictures = new Map<string, Picture>()
  private readonly looksLeft = new Map<string, number>()

  /** Stores an image whose first `looks` status requests report that it is still being processed. */
  add(id: string, picture: Picture, polls: number) {
    this.pictures.set(id, picture)
    this.looksLeft.set(id, polls)
  }

  look(id: string) {
    this.looksLeft.set(id, (this.looksLeft.get(id) ?? 0) - 1)
  }

  private isFinished(id: string) {
    return (this.looksLeft.get(id) ?? 0) <= 0
  }

  shown(base: string, id: string) {
    return {
      id,
      type: "image",
      url: this.isFinished(id) ? `${base}/media/${id}` : null,
      description: this.pictures.get(id)?.description ?? null,
    }
  }

  attached(ids: ReadonlyArray<string>): ReadonlyArray<object> {
    return ids.map((id) => {
      const picture = this.pictures.get(id)
      if (picture === undefined) throw new ErrorResponse(404, "Record not found")
      if (!this.isFinished(id)) {
        throw new ErrorResponse(422, "Cannot attach files that have not finished processing. Try again in a moment!")
      }
      return { id, ...picture }
    })
  }
}
