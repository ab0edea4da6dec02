import { describe, expect, it } from "vitest";
import type { Turn } from "./trajectory.js";
import { describeFirstRollout, describeFirstSessions } from "./describe-first-rollout.js";

const CHOICES = Int32Array.of(5, 6, 7);

/**
 * A turn whose prompt, action and reward are given; its log-probability is by default the one of a
 * uniform draw.
 */
function turn(prompt: number, token: number, reward: number, { logProb = -Math.log(3), isValid = true } = {}): Turn {
  return {
    prompt: [1, prompt],
    tokens: [token],
    logProbs: [logProb],
    allowedTokens: [CHOICES],
    text: "",
    finishReason: "stop",
    isValid,
    attempts: 1,
    penalty: 0,
    reward,
  };
}

/** Describes a rollout of 100 episodes of one turn. */
const describeTurns = (make: (i: number) => Turn) =>
  describeFirstRollout({
    trajectories: Array.from({ length: 100 }, (_, i) => ({
      turns: [make(i)],
      end: "terminated",
      bootstrapPrompt: undefined,
    })),
  });

/** Distinct log-probabilities, so that the model tells prompts apart. */
const logProbOf = (prompt: number) => -0.5 - prompt / 10;
const healthy = (i: number) => turn(i % 5, CHOICES[i % 3], i % 2, { logProb: logProbOf(i % 5) });

describe("describeFirstRollout", () => {
  it("says nothing about a policy that explores and rewards that vary", () => {
    expect(describeTurns(healthy)).toEqual([]);
  });

  it("says nothing about few turns", () => {
    expect(
      describeFirstRollout({
        trajectories: [{ turns: [turn(0, 5, 0)], end: "terminated", bootstrapPrompt: undefined }],
      }),
    ).toEqual([]);
  });

  it.each([
    [
      "completions without an action",
      (i: number) => ({ ...healthy(i), isValid: false }),
      /100 % .* name no action.*--action-mode choices/,
    ],
    ["rewards that are all equal", (i: number) => ({ ...healthy(i), reward: 2 }), /All 100 rewards .* are 2/],
    [
      "a policy that hardly explores",
      (i: number) => turn(i % 5, 5, i % 2, { logProb: i % 5 === 0 ? -0.2 : -0.001 }),
      /nearly deterministic: .* of at most 1\.1 nats.*--entropy-coef/,
    ],
    [
      "a model that does not read",
      (i: number) => turn(i % 5, CHOICES[i % 3], i % 2),
      /gives 5 different observations nearly the same/,
    ],
  ])("names %s and a remedy", (_, make, message) => {
    const problems = describeTurns(make);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(message);
    expect(problems[0]).toMatch(/See docs\/training\.md#when-it-does-not-learn\.$/);
  });

  it("names the turn whose observation the prompt lacks", () => {
    const trajectories = Array.from({ length: 60 }, (_, i) => ({
      turns: [
        turn(10 + (i % 3), 5, 0, { logProb: logProbOf(i % 3) }),
        turn(20, 5, 0, { logProb: -0.9 }),
        turn(30, CHOICES[i % 2], i % 3 === i % 2 ? 1 : 0),
      ],
      end: "terminated" as const,
      bootstrapPrompt: undefined,
    }));
    const problems = describeFirstRollout({ trajectories });
    expect(problems).toEqual([expect.stringMatching(/depends on an observation 2 turns earlier.*--history-turns 2/)]);
  });

  it("takes equal chance within a group for what it is", () => {
    // The seed of a group decides the first observation and what the second turn leads to.
    const trajectories = Array.from({ length: 64 }, (_, i) => {
      const group = Math.floor(i / 8);
      return {
        turns: [
          turn(10 + group, CHOICES[i % 3], 0, { logProb: logProbOf(group % 3) }),
          turn(20, CHOICES[0], group % 2, { logProb: -0.9 }),
        ],
        end: "terminated" as const,
        bootstrapPrompt: undefined,
        group,
      };
    });
    expect(describeFirstRollout({ trajectories })).toEqual([]);
    const ungrouped = trajectories.map(({ turns, end, bootstrapPrompt }) => ({ turns, end, bootstrapPrompt }));
    expect(describeFirstRollout({ trajectories: ungrouped })).toEqual([
      expect.stringMatching(/depends on an observation 1 turn earlier/),
    ]);
  });
});

describe("groups", () => {
  const roll = (start: (i: number) => number, seat?: number) =>
    describeFirstRollout({
      trajectories: Array.from({ length: 64 }, (_, i) => ({
        turns: [turn(start(i), CHOICES[i % 3], i % 2, { logProb: logProbOf(i % 5) })],
        end: "terminated" as const,
        bootstrapPrompt: undefined,
        group: Math.floor(i / 8),
        seat,
      })),
    });

  it("are named if their episodes start differently", () => {
    expect(roll((i) => i % 5)).toEqual([expect.stringMatching(/In 8 of 8 groups, .*Math\.random.*--algorithm ppo/)]);
    expect(roll((i) => Math.floor(i / 8))).toEqual([]);
  });

  it("of a game may start differently: a later seat sees what the first one did", () => {
    expect(roll((i) => i % 5, 1)).toEqual([]);
  });
});

describe("describeFirstSessions", () => {
  const trajectories = Array.from({ length: 100 }, (_, i) => ({
    turns: [healthy(i)],
    end: "terminated" as const,
    bootstrapPrompt: undefined,
  }));

  it("names a message into which an agent wrote an object", () => {
    const decode = (prompt: readonly number[]) => (prompt[1] === 3 ? "Order: [object Object]" : "Order: 3");
    expect(describeFirstSessions({ trajectories }, decode)).toEqual([
      expect.stringContaining('A message of the agent is a text with "[object Object]": write the fields'),
    ]);
    expect(describeFirstSessions({ trajectories }, () => "Order: 3")).toEqual([]);
  });
});
