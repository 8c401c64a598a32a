/** The attachments of a draft: chosen, dropped or pasted, with the remaining space. */
import { useId, useRef, useState } from "preact/hooks"
import { bytes } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Icon } from "../ui/Icon.tsx"
import { type Attached, attached, attachedAtMost, filesAtMost, previewOf, sizeOf } from "./attaching.ts"
import { say } from "./texts.ts"

/** A file that is being read, with the share that was read. */
interface Reading {
  readonly name: string
  readonly share: number
}

/** Adds files to a draft: chosen, dropped or pasted. `beforeReading` is called if the files fit. */
export const useFiles = (
  value: ReadonlyArray<Attached>,
  onValue: (value: ReadonlyArray<Attached>) => void,
  beforeReading: () => void,
) => {
  const [wrong, setWrong] = useState<string>()
  const [reading, setReading] = useState<Reading>()
  const latest = useRef(value)
  latest.current = value
  const used = value.reduce((sum, one) => sum + sizeOf(one), 0)
  const take = async (files: ReadonlyArray<File>) => {
    setWrong(undefined)
    const wanted = files.reduce((sum, { size }) => sum + size, used)
    if (wanted > attachedAtMost) return setWrong(say("too_large", { size: bytes(wanted), most: bytes(attachedAtMost) }))
    if (value.length + files.length > filesAtMost) return setWrong(say("too_many", { count: filesAtMost }))
    beforeReading()
    try {
      for (const file of files) {
        const at = (share: number) => setReading({ name: file.name, share })
        at(0)
        const read = await attached(file, file.name, file.type, at)
        latest.current = [...latest.current, read]
        onValue(latest.current)
      }
    } catch {
      setWrong(say("unreadable"))
    } finally {
      setReading(undefined)
    }
  }
  /** Takes the files of a paste or a drop, if there are any. */
  const takeFrom = (event: Event, data: DataTransfer | null) => {
    const files = [...(data?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    void take(files)
  }
  return {
    value,
    onValue,
    used,
    wrong,
    reading,
    take,
    /** Props of the element on which files can be dropped and pasted. */
    target: {
      onDragOver: (event: DragEvent) => {
        if (event.dataTransfer?.types.includes("Files") === true) event.preventDefault()
      },
      onDrop: (event: DragEvent) => takeFrom(event, event.dataTransfer),
      onPaste: (event: ClipboardEvent) => takeFrom(event, event.clipboardData),
    },
  }
}

export const Files = ({ of }: { readonly of: ReturnType<typeof useFiles> }) => {
  const id = useId()
  const { value, onValue, used, wrong, reading, take } = of
  return (
    <div class="stack">
      {value.length === 0 ? null : (
        <ul class="box rows attachments" aria-label={say("attachments")}>
          {value.map((file, index) => (
            <li key={`${index}${file.filename}`}>
              {previewOf(file) === undefined ? (
                <Icon name="clip" />
              ) : (
                <img class="file-preview" src={previewOf(file)} alt="" />
              )}
              <bdi class="grow one-line">{file.filename}</bdi>
              <span class="muted small number">{bytes(sizeOf(file))}</span>
              <Button
                small
                kind="plain"
                icon="cross"
                aria-label={say("drop", { address: file.filename })}
                onClick={() => onValue(value.filter((one) => one !== file))}
              />
            </li>
          ))}
        </ul>
      )}
      <div class="bar">
        <label
          class="button file"
          style={{ position: "relative" }}
          data-kind="normal"
          data-small
          for={id}
          aria-busy={reading !== undefined}
        >
          <Icon name="clip" />
          {say("attach")}
          <input
            id={id}
            type="file"
            multiple
            class="hidden-text"
            aria-describedby={`${id}-room`}
            onChange={({ currentTarget }) => {
              void take([...(currentTarget.files ?? [])])
              currentTarget.value = ""
            }}
          />
        </label>
        <span class="muted small" id={`${id}-room`}>
          {used === 0
            ? say("room", { most: bytes(attachedAtMost) })
            : say("room_used", { used: bytes(used), most: bytes(attachedAtMost) })}
        </span>
      </div>
      {reading === undefined ? null : (
        <label class="bar small muted">
          <span class="one-line">
            {say("reading")} <bdi>{reading.name}</bdi>
          </span>
          <progress value={reading.share} max={1} />
        </label>
      )}
      {wrong === undefined ? null : (
        <div class="field">
          <span class="wrong" role="alert">
            {wrong}
          </span>
        </div>
      )}
    </div>
  )
}
