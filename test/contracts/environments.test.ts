import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../src/core/errors.js";
import { compileToByteAutomaton } from "../../src/generation/constraints/output-constraint.js";
import { checkEnv } from "../../src/testing.js";
import "../../src/text-world/index.js";
import type { Env, EnvState, RenderFrame, StepResult } from "../../src/envs/env.js";
import { make, registry } from "../../src/envs/registry/make.js";
import { encodePng } from "../../src/envs/rendering/png.js";
import { Text } from "../../src/envs/spaces/text.js";
import { getChoices } from "../../src/envs/text-interface.js";

/** Warnings of checkEnv about environments that equal Gymnasium's. */
const ACCEPTED_WARNINGS: Readonly<Record<string, readonly RegExp[]>> = {
  "CartPole-v0": [/no lower bound/, /no upper bound/],
  "CartPole-v1": [/no lower bound/, /no upper bound/],
  "Pendulum-v1": [/symmetric range/],
};
/** Environments without randomness. */
const DETERMINISTIC = ["CliffWalking-v1"];
/** Words, punctuation marks and single digits, roughly the tokens of a small tokenizer. */
const TOKENS = /\p{L}+|\d|[^\s\p{L}\d]/gu;
const MAX_OBSERVATION_TOKENS = 40;
/** BabyAI lists up to ten things in view, each with two distances. */
const MAX_BABY_AI_TOKENS = 140;

const ids = registry.all().map(({ id }) => id);

async function runSteps(env: Env, steps: number): Promise<StepResult<unknown>[]> {
  const results: StepResult<unknown>[] = [];
  for (let i = 0; i < steps; i++) {
    const result = await env.step(env.actionSpace.sample());
    results.push(result);
    if (result.terminated || result.truncated) await env.reset();
  }
  return results;
}

async function getErrorCode(call: () => unknown): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error instanceof LlamaGymError ? error.code : String(error);
  }
}

function describeFrameProblem(frame: RenderFrame): string | undefined {
  if (typeof frame === "string") return frame.trim() === "" ? "an empty text" : undefined;
  const isPng = Buffer.from(encodePng(frame)).subarray(1, 4).toString() === "PNG";
  return isPng && new Set(frame.data).size > 2 ? undefined : "an empty image";
}

describe.each(ids)("%s", (id) => {
  it("passes checkEnv", async () => {
    const { warnings } = await checkEnv(make(id).unwrapped);
    const accepted = ACCEPTED_WARNINGS[id] ?? [];
    expect(warnings.filter((warning) => !accepted.some((pattern) => pattern.test(warning)))).toEqual([]);
  });

  it("gives the same episodes for the same seed and different ones for another", async () => {
    const episode = async (seed: number) => {
      const env = make(id);
      const started = await env.reset({ seed });
      env.actionSpace.seed(1);
      return [started, ...(await runSteps(env, 60))];
    };
    expect(await episode(7)).toEqual(await episode(7));
    const others = await Promise.all([8, 9, 10, 11].map(episode));
    const first = JSON.stringify(await episode(7));
    expect(others.some((other) => JSON.stringify(other) !== first)).toBe(!DETERMINISTIC.includes(id));
  });

  it("continues identically from a saved state, wrappers included", async () => {
    const env = make(id);
    await env.reset({ seed: 3 });
    env.actionSpace.seed(4);
    await runSteps(env, 7);
    const state = JSON.parse(JSON.stringify(env.getState())) as EnvState;
    env.actionSpace.seed(5);
    const expected = await runSteps(env, 120);
    const restored = make(id);
    restored.setState(state);
    restored.actionSpace.seed(5);
    expect(await runSteps(restored, 120)).toEqual(expected);
  });

  it.each(registry.spec(id).entryPoint({}).metadata.renderModes)("renders as %s", async (mode) => {
    const env = make(id);
    await env.reset({ seed: 1 });
    await env.step(env.actionSpace.sample());
    expect(describeFrameProblem(await env.render(mode))).toBeUndefined();
  });

  it("parses every choice within a sentence, and formats it unchanged", async () => {
    const env = make(id);
    const { text } = env;
    if (text === undefined) throw new Error("no text interface");
    const { observation, info } = await env.reset({ seed: 2 });
    expect(text.systemPrompt).not.toBe("");
    const choices = getChoices(text, observation, info);
    expect(choices).not.toEqual([]);
    // A completion is one of the choices, or of another form, which the space samples.
    for (const choice of choices ?? []) {
      const completion = env.actionSpace instanceof Text ? choice : `I think that ${choice} is best.`;
      const action = text.parseAction(completion, observation, info);
      expect(env.actionSpace.contains(action)).toBe(true);
      expect(text.formatAction(action)).toBe(choice);
    }
    const isFree = env.actionSpace instanceof Text;
    expect(text.parseAction("", observation, info)).toBeUndefined();
    expect(text.parseAction("?!", observation, info) === undefined).toBe(!isFree);
  });

  it("formats its actions as completions that it parses, and that its JSON schema allows", async () => {
    const env = make(id);
    const text = env.text!;
    const { observation, info } = await env.reset({ seed: 2 });
    env.actionSpace.seed(3);
    const completions = Array.from({ length: 20 }, () => text.formatAction(env.actionSpace.sample()));
    const isRead = (completion: string) => env.actionSpace.contains(text.parseAction(completion, observation, info));
    expect(completions.filter((completion) => !isRead(completion))).toEqual([]);
    const automaton = text.jsonSchema && compileToByteAutomaton({ jsonSchema: text.jsonSchema });
    const isAllowed = (completion: string) =>
      automaton === undefined || automaton.accepting[automaton.walk(0, Buffer.from(completion))] === 1;
    expect(completions.filter((completion) => !isAllowed(completion))).toEqual([]);
  });

  it("rejects invalid actions, options and seeds with a specific error", async () => {
    expect(await getErrorCode(() => make(id).step(0))).toBe("ENV_NOT_RESET");
    expect(await getErrorCode(() => make(id).unwrapped.step(make(id).actionSpace.sample()))).toBe("ENV_NOT_RESET");
    expect(await getErrorCode(() => make(id).render("ansi"))).toBe("ENV_NOT_RESET");
    expect(await getErrorCode(() => make(id, { nonsense: 1 }))).toBe("INVALID_ARGUMENT");
    expect(await getErrorCode(() => make(id).reset({ seed: -1 }))).toBe("INVALID_ARGUMENT");
    for (const action of [undefined, null, "jump", NaN, 1.5, 99, {}, [], [NaN]]) {
      const env = make(id);
      await env.reset({ seed: 1 });
      const expected = env.actionSpace.contains(action) ? undefined : "ENV_ACTION_INVALID";
      expect(await getErrorCode(() => env.step(action))).toBe(expected);
    }
  });

  it("rejects steps after the end of an episode", async () => {
    const env = make(id, { maxEpisodeSteps: 500 });
    await env.reset({ seed: 6 });
    env.actionSpace.seed(6);
    for (;;) {
      const { terminated, truncated } = await env.step(env.actionSpace.sample());
      if (terminated || truncated) break;
    }
    expect(await getErrorCode(() => env.step(env.actionSpace.sample()))).toBe("ENV_NOT_RESET");
    await env.reset();
    expect(await getErrorCode(() => env.step(env.actionSpace.sample()))).toBeUndefined();
  });
});

describe.each(ids.filter((id) => registry.spec(id).entryPoint({}).observationSpace.constructor.name !== "Text"))(
  "%s's observations as text",
  (id) => {
    const maxTokens = id.startsWith("BabyAI-") ? MAX_BABY_AI_TOKENS : MAX_OBSERVATION_TOKENS;
    it(`have at most ${maxTokens} tokens`, async () => {
      const env = make(id);
      await env.reset({ seed: 5 });
      env.actionSpace.seed(5);
      const texts = (await runSteps(env, 300)).map(
        ({ observation, info }) => env.text?.formatObservation(observation, info) ?? "",
      );
      const longest = Math.max(...texts.map((text) => text.match(TOKENS)?.length ?? 0));
      expect(longest).toBeLessThanOrEqual(maxTokens);
    });
  },
);
