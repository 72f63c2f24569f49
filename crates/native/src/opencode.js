// @ORIGIN@
// Reports prompts and tools to Retake. Without Retake's program it does nothing.
import { spawn } from "node:child_process"

const PROGRAM = "@PROGRAM@"
// How long an event may wait for its answer. A prompt may be a command of Retake's that rewinds many files.
const ANSWER_MS = 2500
const COMMAND_MS = 60000

export const Retake = async ({ client, directory }) => {
  let gone = false

  const report = (event, body, bound) =>
    new Promise((resolve) => {
      if (gone) return resolve("")
      let out = ""
      let timer
      const done = () => {
        clearTimeout(timer)
        resolve(out)
      }
      timer = setTimeout(done, bound)
      try {
        const child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
        child.on("error", () => {
          gone = true
          done()
        })
        child.on("close", done)
        child.stdin.on("error", () => {})
        child.stdout.on("data", (data) => (out += data))
        child.stdin.end(JSON.stringify({ event, cwd: directory, ...body }))
      } catch {
        gone = true
        done()
      }
    })

  const parse = (text) => {
    try {
      return text.trim() === "" ? {} : JSON.parse(text)
    } catch {
      return {}
    }
  }

  return {
    "chat.message": async (input, output) => {
      const own = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = own.map((part) => part.text).join("\n")
      const body = { sessionID: input.sessionID, messageID: output.message.id, prompt }
      const answer = parse(await report("chat.message", body, COMMAND_MS))
      if (answer.decision === "block") {
        await client.tui.showToast({ body: { message: answer.reason, variant: "info", duration: 20000 } }).catch(() => {})
        throw new Error(answer.reason)
      }
      if (answer.context && own[0]) own[0].text += `\n\n<system-reminder>\n${answer.context}\n</system-reminder>`
    },
    "tool.execute.before": async (input, output) => {
      const body = { sessionID: input.sessionID, tool: input.tool, callID: input.callID, args: output.args }
      await report("tool.execute.before", body, ANSWER_MS)
    },
    "tool.execute.after": async (input, output) => {
      const body = { sessionID: input.sessionID, tool: input.tool, callID: input.callID, args: input.args }
      await report("tool.execute.after", { ...body, title: output.title }, ANSWER_MS)
    },
    event: async ({ event }) => {
      const info = event.properties?.info
      const sessionID = event.properties?.sessionID ?? info?.id
      if (["session.idle", "session.created", "session.deleted"].includes(event.type)) {
        await report(event.type, { sessionID, parentID: info?.parentID }, ANSWER_MS)
      } else if (event.type === "session.updated" && info?.revert) {
        await report(event.type, { sessionID, revert: { messageID: info.revert.messageID } }, ANSWER_MS)
      }
    },
  }
}
