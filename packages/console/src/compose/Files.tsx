/** The attachments of a draft: chosen, dropped or pasted, with the remaining space. */
import { useId, useState } from "preact/hooks"
import { bytes } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Icon } from "../ui/Icon.tsx"
import { type Attached, attached, attachedAtMost, sizeOf } from "./attaching.ts"
import { say } from "./texts.ts"

const filesAtMost = 50

interface FilesProps {
  readonly value: ReadonlyArray<Attached>
  readonly onValue: (value: ReadonlyArray<Attached>) => void
}

export const Files = ({ value, onValue }: FilesProps) => {
  const id = useId()
  const [wrong, setWrong] = useState<string>()
  const [busy, setBusy] = useState(false)
  const used = value.reduce((sum, one) => sum + sizeOf(one), 0)
  const take = async (files: ReadonlyArray<File>) => {
    setWrong(undefined)
    const wanted = files.reduce((sum, { size }) => sum + size, used)
    if (wanted > attachedAtMost) return setWrong(say("too_large", { size: bytes(wanted), most: bytes(attachedAtMost) }))
    if (value.length + files.length > filesAtMost) return setWrong(say("too_many", { count: filesAtMost }))
    setBusy(true)
    try {
      const read: Array<Attached> = []
      for (const file of files) read.push(await attached(file, file.name, file.type))
      onValue([...value, ...read])
    } catch {
      setWrong(say("unreadable"))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div
      class="stack"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        const files = [...(event.dataTransfer?.files ?? [])]
        if (files.length === 0) return
        event.preventDefault()
        void take(files)
      }}
    >
      {value.length === 0 ? null : (
        <ul class="box rows attachments" aria-label={say("attachments")}>
          {value.map((file, index) => (
            <li key={`${index}${file.filename}`}>
              <Icon name="clip" />
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
          aria-busy={busy}
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
