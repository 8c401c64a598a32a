/** A model that reads the message, replies, and says so. */
import { AIMessage } from "@langchain/core/messages"
import { fakeModel } from "@langchain/core/testing"

const call = (name, args) => new AIMessage({ content: "", tool_calls: [{ name, args, id: name }] })

export const scripted = (id) =>
  fakeModel()
    .respond(call("read_mail", { id }))
    .respond((messages) => {
      const { subject } = JSON.parse(messages.at(-1).content)
      return call("reply", { id, text: `I read: ${subject}` })
    })
    .respond(new AIMessage("Answered."))
