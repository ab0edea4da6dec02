import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "./support/command.js";
import { writeRandomModel } from "./support/random-model.js";

let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel({ maxPositions: 512 }));
});
afterAll(() => remove());

const play = (args: readonly string[]) => runCommand(["play", ...args]);
const agentArgs = () => ["--agent", "--model", folder, "--threads", "1", "--seed", "1"];

describe("llamagym play --agent", () => {
  it("holds replies to the choices, plays all episodes, and plays the same again", async () => {
    const game = ["frozen-lake", "-o", "isSlippery=false", "--max-steps", "4"];
    const args = [...game, "--episodes", "2", "--replies", "choices", ...agentArgs()];
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
    const length = ["--max-steps", "8", "--history-turns", "100"];
    const args = ["cliff-walking", "--max-new-tokens", "3", ...length, ...agentArgs()];
    const { status, out, err } = await play(args);
    expect(status).toBe(0);
    const steps = Number(/after (\d+) steps?: return/.exec(out)?.[1]);
    const drawn = out.match(/^That is no action here; at random: (up|right|down|left)$/gm)?.length ?? 0;
    expect(drawn).toBeGreaterThan(0);
    expect(out).toContain(`${steps - drawn} of ${steps} replies were actions.`);
    expect(err).toContain("(The context is full: the oldest turn was left out.)");
  });

  it("shows what a reply was taken for that the environment's own parser does not know", async () => {
    const pattern = ["--replies", "pattern", "--reply-pattern", "stya", "--max-new-tokens", "8"];
    const { status, out } = await play(["blackjack", ...pattern, ...agentArgs()]);
    expect(status).toBe(0);
    expect(out).toMatch(/^> stya\nTaken for: stay \(nearest\)$/m);
    expect(out).toContain("1 of 1 replies were actions, 1 of them by extraction.");
  });

  it("plays with the model that comes with the package where none is named, greedily too", async () => {
    const { status, out } = await play(["blackjack", "--agent", "--seed", "3", "--episodes", "3"]);
    expect(status).toBe(0);
    expect(out.match(/^> .*(hit|stay)/gm)!.length).toBeGreaterThanOrEqual(3);
    expect(out).toMatch(/^Mean return .*, of 3 episodes\.$/m);
    const greedy = ["frozen-lake", "--agent", "--replies", "choices", "--temperature", "0", "--max-steps", "6"];
    const first = await play([...greedy, "-o", "isSlippery=false", "--seed", "1"]);
    const second = await play([...greedy, "-o", "isSlippery=false", "--seed", "2"]);
    expect(first.status).toBe(0);
    expect(second.out).toBe(first.out);
  });

  it.each([
    [["frozen-lake", "--model", "somewhere"], /--model is for a model that plays: add --agent/],
    [["frozen-lake", "--temperature", "0"], /--temperature is for a model that plays/],
    [["frozen-lake", "--agent", "--replies", "held"], /--replies must be one of free, choices/],
  ])("refuses %j", async (args, message) => {
    const { status, out, err } = await play(args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toMatch(message);
  });
});
