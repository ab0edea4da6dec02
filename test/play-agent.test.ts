import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "./support/random-model.js";

/** The built command, as a user runs it. */
const bin = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));

let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel({ maxPositions: 512 }));
});
afterAll(() => remove());

function play(args: readonly string[]): Promise<{ status: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [bin, "play", ...args]);
  let out = "";
  let err = "";
  child.stdout.on("data", (data: Buffer) => (out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (err += data.toString()));
  child.stdin.end();
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, out, err })));
}

const agent = () => ["--agent", "--model", folder, "--threads", "1", "--seed", "1"];

describe("llamagym play --agent", () => {
  it("holds replies to the choices, plays all episodes, and plays the same again", async () => {
    const args = ["frozen-lake", "-o", "isSlippery=false", "--max-steps", "4", "--episodes", "2", ...agent()];
    const [{ status, out, err }, again] = await Promise.all([play(args), play(args)]);
    expect({ status, err }).toEqual({ status: 0, err: "" });
    const replies = [...out.matchAll(/^> (.*)$/gm)].map(([, reply]) => reply);
    expect(replies.length).toBeGreaterThan(1);
    for (const reply of replies) expect(["left", "down", "right", "up"]).toContain(reply);
    expect(out.match(/^The episode (ended|stopped at the step limit) after/gm)).toHaveLength(2);
    expect(out).toMatch(/^Mean return 0, [\d.]+ steps, of 2 episodes\.$/m);
    expect(out).toContain(`${replies.length} of ${replies.length} replies were actions.`);
    expect(again.out).toBe(out);
  });

  it("takes a random action for a free reply that is none, and leaves out the oldest turns of a long game", async () => {
    const args = ["cliff-walking", "--free", "--max-new-tokens", "3", "--max-steps", "8", ...agent()];
    const { status, out, err } = await play(args);
    expect(status).toBe(0);
    const steps = Number(/after (\d+) steps?: return/.exec(out)?.[1]);
    const drawn = out.match(/^That is no action here; at random: (up|right|down|left)$/gm)?.length ?? 0;
    expect(drawn).toBeGreaterThan(0);
    expect(out).toContain(`${steps - drawn} of ${steps} replies were actions.`);
    expect(err).toContain("(The context is full: the oldest turn was left out.)");
  });

  it.each([
    [["frozen-lake", "--agent"], /--model is missing/],
    [["frozen-lake", "--model", "somewhere"], /--model is for a model that plays: add --agent/],
    [["frozen-lake", "--free"], /--free is for a model that plays/],
  ])("refuses %j", async (args, message) => {
    const { status, out, err } = await play(args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toMatch(message);
  });
});
