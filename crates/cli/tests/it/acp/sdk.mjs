// Drives `retake acp` with the published TypeScript SDK: node sdk.mjs VERSION SDK_DIR WORKSPACE RETAKE
//
// The SDK checks every message that it receives by its own rules and drops what breaks them, so what is asserted here has passed them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

const [version, sdk, workspace, retake] = process.argv.slice(2);
const acp = await import(join(sdk, version === "1" ? "dist/v1/unstable/acp.js" : "dist/v2/unstable/acp.js"));

const agent = spawn(retake, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const updates = [];
let truncated = 0;
let wake = () => {};
const app = acp
  .client({ name: "sdk-test" })
  .onRequest("session/request_permission", () => ({ outcome: { outcome: "selected", optionId: "allow" } }))
  .onNotification("session/update", ({ params }) => {
    updates.push(params.update);
    if (params.update.sessionUpdate === "_history_truncated") truncated += 1;
    wake();
  })
  .onNotification("_session/history_truncated", (params) => params, () => {
    truncated += 1;
    wake();
  });

async function until(condition) {
  while (!condition()) await new Promise((resolve) => (wake = resolve));
}

await app.connectWith(stream, async (ctx) => {
  const meta = { _meta: { retake: {} } };
  const greeting =
    version === "1"
      ? { protocolVersion: 1, clientCapabilities: meta }
      : { protocolVersion: 2, info: { name: "sdk-test", version: "1" }, capabilities: meta };
  const greeted = await ctx.request("initialize", greeting);
  assert.equal(greeted.protocolVersion, Number(version));
  const { sessionId } = await ctx.request("session/new", { cwd: workspace, mcpServers: [] });

  async function turn(text) {
    const idle = () => updates.filter((one) => one.sessionUpdate === "state_update" && one.state === "idle");
    const before = idle().length;
    const answer = await ctx.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    if (version === "1") {
      assert.equal(answer.stopReason, "end_turn");
      return answer._meta?.retake.messageId;
    }
    await until(() => idle().length > before);
    assert.equal(idle().at(-1).stopReason, "end_turn");
    return answer.messageId;
  }

  await turn("write one");
  const second = await turn("write two");
  assert.equal(readFileSync(join(workspace, "two.txt"), "utf8"), "2");
  const { points } = await ctx.request("_session/rewind_points", { sessionId });
  assert.deepEqual(points.map((point) => point.text), ["write two", "write one"]);
  const rewound = await ctx.request("_session/rewind", { sessionId, beforeMessageId: second });
  await until(() => truncated === 1);
  assert.equal(rewound.content[0].text, "write two");
  assert.equal(existsSync(join(workspace, "two.txt")), false);
  await ctx.request("_session/undo", { sessionId });
  assert.equal(existsSync(join(workspace, "two.txt")), true);
  await ctx.request("_session/redo", { sessionId });
  await turn("go on");
  await turn("/rewind");
  await until(() => updates.some((one) => one.content?.text?.includes("go on,")));
  const said = updates.filter((one) => one.sessionUpdate === "agent_message_chunk").map((one) => one.content.text).join("");
  assert.match(said, /\*\*2\.\*\* go on/);
  await ctx.request("session/close", { sessionId });

  updates.length = 0;
  const load = { sessionId, cwd: workspace, mcpServers: [] };
  if (version === "1") await ctx.request("session/load", load);
  else await ctx.request("session/resume", { ...load, replayFrom: { type: "start" } });
  const kinds = version === "1" ? ["user_message_chunk"] : ["user_message"];
  // Handlers run after the answer that they came before.
  await until(() => updates.some((one) => one.sessionUpdate === "available_commands_update"));
  const asked = updates.filter((one) => kinds.includes(one.sessionUpdate));
  const text = (one) => (Array.isArray(one.content) ? one.content[0].text : one.content.text);
  assert.deepEqual(asked.map(text), ["write one", "go on"]);
  assert.ok(updates.some((one) => one.sessionUpdate === "tool_call_update" && one.status === "completed"));
  const { sessions } = await ctx.request("session/list", { cwd: workspace });
  assert.equal(sessions[0].sessionId, sessionId);
});
agent.stdin.end();
await new Promise((resolve) => agent.once("exit", resolve));
assert.equal(agent.exitCode, 0);
console.log("done");
