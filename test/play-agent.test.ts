import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, runInHost } from "./support/command.js";
import { writeRandomModel } from "./support/random-model.js";

let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel({ maxPositions: 512 }));
});
afterAll(() => remove());

const play = (args: readonly string[]) => runInHost(["play", ...args]);
const agentArgs = () => ["--agent", "--model", folder, "--threads", "1", "--seed", "1"];

describe("llamagym play --agent", () => {
  it("constrains completions to the choices and plays the same episodes for the same seed", async () => {
    const env = ["frozen-lake", "-o", "isSlippery=false", "--max-episode-steps", "4"];
    const args = [...env, "--episodes", "2", "--action-mode", "choices", ...agentArgs()];
    const [{ status, out, err }, again] = await Promise.all([play(args), runCommand(["play", ...args])]);
    expect({ status, err }).toEqual({ status: 0, err: "" });
    const completions = [...out.matchAll(/^> (.*)$/gm)].map(([, completion]) => completion);
    expect(completions.length).toBeGreaterThan(1);
    for (const completion of completions) expect(["left", "down", "right", "up"]).toContain(completion);
    expect(out.match(/^The episode (ended|stopped at the step limit) after/gm)).toHaveLength(2);
    expect(out).toMatch(/^2 episodes: mean return 0, [\d.]+ steps on average\.$/m);
    expect(out).toContain(`${completions.length} of ${completions.length} completions were valid actions.`);
    expect(again.out).toBe(out);
  });

  it("takes a random action for an invalid completion, and drops the oldest turns of a long episode", async () => {
    const length = ["--max-episode-steps", "8", "--history-turns", "100"];
    const args = ["cliff-walking", "--action-mode", "free", "--max-new-tokens", "3", ...length, ...agentArgs()];
    const { status, out, err } = await play(args);
    expect(status).toBe(0);
    const steps = Number(/after (\d+) steps?: return/.exec(out)?.[1]);
    const drawn = out.match(/^Not a valid action; random action: (up|right|down|left)$/gm)?.length ?? 0;
    expect(drawn).toBeGreaterThan(0);
    expect(out).toContain(`${steps - drawn} of ${steps} completions were valid actions.`);
    expect(err).toContain("(Context full: dropped the oldest turn.)");
  });

  it("shows the action extracted from a completion that the environment cannot parse", async () => {
    const pattern = ["--action-mode", "regex", "--action-regex", "stya", "--max-new-tokens", "8"];
    const { status, out } = await play(["blackjack", ...pattern, ...agentArgs()]);
    expect(status).toBe(0);
    expect(out).toMatch(/^> stya\nAction: stay \(nearest\)$/m);
    expect(out).toContain("1 of 1 completions were valid actions, 1 of them by extraction.");
  });

  it("plays with the embedded model by default, sampled and greedy", async () => {
    const { status, out } = await play(["blackjack", "--agent", "--seed", "3", "--episodes", "3"]);
    expect(status).toBe(0);
    expect(out.match(/^> .*(hit|stay)/gm)!.length).toBeGreaterThanOrEqual(3);
    expect(out).toMatch(/^3 episodes: mean return /m);
    const greedy = [
      "frozen-lake",
      "--agent",
      "--action-mode",
      "choices",
      "--temperature",
      "0",
      "--max-episode-steps",
      "6",
    ];
    const first = await play([...greedy, "-o", "isSlippery=false", "--seed", "1"]);
    const second = await play([...greedy, "-o", "isSlippery=false", "--seed", "2"]);
    expect(first.status).toBe(0);
    expect(second.out).toBe(first.out);
  });

  it.each([
    [["frozen-lake", "--model", "somewhere"], /--model requires --agent/],
    [["frozen-lake", "--temperature", "0"], /--temperature requires --agent/],
    [["frozen-lake", "--agent", "--action-mode", "held"], /--action-mode must be free, choices/],
  ])("rejects %j", async (args, message) => {
    const { status, out, err } = await play(args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toMatch(message);
  });
});
