import { z } from "zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ppo } from "../algorithms/index.js";
import { ScriptedAgent } from "../../../test/support/player.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { TextInterface } from "../../envs/text-interface.js";
import type { JsonSchema, LanguageModel } from "../../generation/index.js";
import type { Turn } from "../rollout/trajectory.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { createSchemaText, SchemaSpace } from "../../envs.js";
import { Agent } from "./agent.js";
import type { AgentOptions } from "./agent-options.js";
import type { Demonstration } from "../data/read-demonstrations.js";
import { TextAgent, type TextAgentOptions } from "./text-agent.js";

const models = new TrainableModels();
let model: LanguageModel & { readonly folder: string };
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

/** An environment of two arms; a reply means the arm that it names last. */
const arms: TextInterface<number, string> = {
  systemPrompt: "Pull a or b.",
  formatObservation: (observation) => `Round ${observation}.`,
  parseAction: (reply) => reply.match(/\b[ab]\b/g)?.at(-1),
  formatAction: (action) => action,
  choices: ["a", "b"],
};

const PPO = { batchSize: 32, miniBatchSize: 32, learningRate: 1e-2, initKlCoef: 0, adaptiveKl: false };
const settings: TextAgentOptions<number, string> = {
  generation: { maxNewTokens: 24 },
  historyTurns: 0,
  algorithm: ppo(PPO),
};

const THOUGHT = "Say (?<action>[ab]), not [ab]( [a-z ]{1,12})?[.!]?";

const createRegexAgent = (actionRegex: string | RegExp, options: TextAgentOptions<number, string> = {}) =>
  new TextAgent(model, arms, { ...settings, actionMode: "regex", actionRegex, ...options });

async function sampleTurns(agent: Agent<number, string>, count: number): Promise<{ turn: Turn; action: string }[]> {
  const random = new RandomStream(3);
  const steps = Array.from({ length: count }, async (_, i) => {
    const episode = agent.newEpisode(random);
    episode.observe(i, {});
    return episode.act();
  });
  return Promise.all(steps);
}

describe("completions constrained to a pattern", () => {
  it("match it as a whole, and map to the action in its group", async () => {
    const regex = new RegExp(`^(?:${THOUGHT})$`, "u");
    const taken = await sampleTurns(createRegexAgent(THOUGHT), 60);
    for (const { turn, action } of taken) {
      expect(turn).toMatchObject({ isValid: true, extraction: "regex", finishReason: "stop" });
      expect(action).toBe(regex.exec(turn.text)?.groups?.action);
      expect(turn.tokens.length).toBeLessThanOrEqual(24);
    }
    expect(new Set(taken.map(({ action }) => action)).size).toBe(2);
    expect(taken.some(({ turn, action }) => arms.parseAction(turn.text) !== action)).toBe(true);
  });

  it("are read as free ones where it has no group for the action", async () => {
    const [{ turn, action }] = await sampleTurns(createRegexAgent("b and a"), 1);
    expect([turn.text, turn.extraction, action]).toEqual(["b and a", "parser", "a"]);
  });

  it("are not cut off by the stop strings of free completions", async () => {
    // A model without a chat template ends its replies with the line.
    const plain = model.withTokenizer(
      Object.defineProperty(Object.create(model.tokenizer) as typeof model.tokenizer, "chatTemplates", {
        value: new Map(),
      }),
    );
    const agent = new TextAgent(plain, arms, { ...settings, actionMode: "regex", actionRegex: "a\nb\n[xyz]" });
    const [{ turn }] = await sampleTurns(agent, 1);
    expect(turn.text).toMatch(/^a\nb\n[xyz]$/);
  });

  it.each<[string, TextAgentOptions<number, string>, RegExp]>([
    ["none", { actionMode: "regex" }, /requires actionRegex/],
    ["one without its kind", { actionRegex: "a" }, /requires actionMode "regex"; set both/],
    ["one that can never end", { actionMode: "regex", actionRegex: "a[]" }, /matches no text/],
    ["one that is not supported", { actionMode: "regex", actionRegex: "(?=a)a" }, /lookaheads/],
    ["an empty one", { actionMode: "regex", actionRegex: "" }, /empty/],
    [
      "one that is too long",
      { actionMode: "regex", actionRegex: "[a-z]{80}" },
      /"\[a-z\]\{80\}" needs up to \d+ tokens, but the completion is limited to 24. Raise maxNewTokens/,
    ],
    [
      "stop strings with it",
      { actionMode: "regex", actionRegex: "a", generation: { stop: "." } },
      /Remove stop and ignoreEos/,
    ],
  ])("are refused by the constructor with %s", (_, options, message) => {
    expect(() => new TextAgent(model, arms, { ...settings, ...options })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringMatching(message) as string }),
    );
  });

  it("learn which arm pays, and the other one when the sign is flipped", async () => {
    const shareOfA = async (sign: number): Promise<number> => {
      const own = await models.reopen(model.folder);
      const agent = new TextAgent(own, arms, {
        ...settings,
        algorithm: ppo({ ...PPO, learningRate: 3e-3 }),
        actionMode: "regex",
        actionRegex: THOUGHT,
      });
      const chosen: string[] = [];
      for (let round = 0; round < 32 * 14; round++) {
        const action = await agent.act(round % 2);
        chosen.push(action);
        agent.assignReward(action === "a" ? sign : -sign);
        await agent.terminateEpisode();
      }
      const last = chosen.slice(-64);
      return last.filter((action) => action === "a").length / last.length;
    };
    expect(await shareOfA(1)).toBeGreaterThan(0.85);
    expect(await shareOfA(-1)).toBeLessThan(0.15);
  });
});

describe("an agent with its own completion constraint", () => {
  class Held extends ScriptedAgent {
    pattern: string | RegExp | undefined;
    schema: JsonSchema | undefined;
    override choices: readonly string[] | undefined = undefined;

    override getPattern() {
      return this.pattern;
    }

    override getSchema() {
      return this.schema;
    }
  }

  const agent = (given: Partial<Pick<Held, "pattern" | "schema" | "choices" | "read">>, maxNewTokens = 24) =>
    Object.assign(new Held(model, undefined, { ...settings, generation: { maxNewTokens } } as never), given);

  it("gets JSON of its schema", async () => {
    const schema = {
      type: "object",
      properties: { why: { type: "string", maxLength: 5 }, arm: { enum: [3, 4] } },
      required: ["why", "arm"],
    };
    const player = agent({ schema, read: (response) => (JSON.parse(response) as { arm: number }).arm });
    const arm = await player.act("one");
    expect([3, 4]).toContain(arm);
  });

  it.each<[string, Parameters<typeof agent>[0], string, RegExp]>([
    [
      "a schema with what is not supported",
      { schema: { type: "object", unevaluatedProperties: false } },
      "INVALID_ARGUMENT",
      /"unevaluatedProperties" is not supported/,
    ],
    ["a schema that is none", { schema: [] as never }, "AGENT_FAILED", /getSchema must return a JSON schema/],
    ["a pattern that is none", { pattern: 3 as never }, "AGENT_FAILED", /getPattern must return a regular expression/],
    ["a pattern that can never end", { pattern: "[]" }, "INVALID_ARGUMENT", /matches no text/],
    ["a pattern that is too long", { pattern: "x{99}" }, "INVALID_ARGUMENT", /needs up to .* Raise maxNewTokens/],
    [
      "two ways at once",
      { pattern: "a", choices: ["a"] },
      "AGENT_FAILED",
      /Only one of the agent's getChoices and getPattern may constrain/,
    ],
  ])("is reported by the first act of %s", async (_, given, code, message) => {
    await expect(agent(given).act("one")).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
  });
});

describe("an agent with an action schema", () => {
  const action = z.object({ arm: z.enum(["a", "b"]), force: z.int().min(1).max(3) });

  class Schemed<Action> extends Agent<number, Action> {
    override formatObservation(observation: number) {
      return `Round ${observation}.`;
    }
  }

  it("acts by typed values of a zod object or enumeration", async () => {
    const agent = new Schemed(model, undefined, { ...settings, actionSchema: action } as AgentOptions<
      number,
      z.infer<typeof action>
    >);
    const chosen: z.infer<typeof action> = await agent.act(1);
    expect(action.safeParse(chosen).success).toBe(true);
    const options: AgentOptions<number, "a" | "b"> = { ...(settings as object), actionSchema: z.enum(["a", "b"]) };
    expect(["a", "b"]).toContain(await new Schemed(model, undefined, options).act(1));
  });

  it("plays an environment whose action space is a schema", async () => {
    const actionSpace = new SchemaSpace(action);
    const text = createSchemaText<number, z.infer<typeof action>>({
      systemPrompt: "Pull.",
      formatObservation: (observation) => `Round ${observation}.`,
      actionSpace,
    });
    const agent = new TextAgent(model, text, { ...(settings as object), actionMode: "schema" });
    expect(actionSpace.contains(await agent.act(1))).toBe(true);
    const listed = new TextAgent(model, arms, { ...settings, actionMode: "schema" });
    await expect(listed.act(1)).rejects.toThrow(/no JSON schema of its actions/);
  });

  it("without one, reports the missing extractAction", async () => {
    await expect(new Schemed(model, undefined, settings as object).act(1)).rejects.toThrow(/implement extractAction/);
  });
});

describe("demonstrations of completions constrained to a pattern", () => {
  const createDemonstrations = (...replies: readonly string[]): Demonstration[] =>
    replies.map((reply, i) => ({ turns: [{ observationText: `Round ${i}.`, completion: reply }] }));

  it("end with the tokens of such a completion: the end token if it could continue", async () => {
    const agent = createRegexAgent(THOUGHT, { sftWarmStart: createDemonstrations("Say a, not b", "Say b, not a.") });
    const { episodes } = await agent.loadDemonstrations();
    const { tokenizer } = model;
    const ends = episodes.map(({ turns: [{ tokens }] }) => tokenizer.eosTokenIds.includes(tokens.at(-1)!));
    expect(ends).toEqual([true, false]);
    const texts = episodes.map(({ turns: [{ tokens }] }) => tokenizer.decode(tokens, { skipSpecialTokens: true }));
    expect(texts).toEqual(["Say a, not b", "Say b, not a."]);
    const prompts = episodes.map(({ turns: [{ prompt }] }) => prompt);
    const played = await sampleTurns(agent, 2);
    expect(prompts).toEqual(played.map(({ turn }) => turn.prompt));
  });

  it("are refused if they do not match or are longer than the maximum completion", async () => {
    const loadDemonstrations = (options: TextAgentOptions<number, string>, ...replies: readonly string[]) =>
      createRegexAgent(THOUGHT, { sftWarmStart: createDemonstrations(...replies), ...options }).loadDemonstrations();
    for (const reply of ["a", "Say a, not b..", " Say a, not b.", "Say c, not b."])
      await expect(loadDemonstrations({}, reply)).rejects.toMatchObject({ code: "DEMONSTRATION_REJECTED" });
    await expect(loadDemonstrations({}, "Say a, not B.")).rejects.toThrow(
      /contains no action \(It does not match actionRegex\.\)/,
    );
    await expect(
      loadDemonstrations({ generation: { maxNewTokens: 12 } }, "Say a, not b abcdefghijkl."),
    ).rejects.toThrow(/tokens, but completions at most 12/);
  });

  it("are trained, and successes with them", async () => {
    const own = await models.reopen(model.folder);
    const replies = ["Say a, not b.", "Say a, not b at all."];
    const agent = new TextAgent(own, arms, {
      ...settings,
      actionMode: "regex",
      actionRegex: THOUGHT,
      sftWarmStart: createDemonstrations(...replies),
      sftSteps: 40,
      sftLearningRate: 1e-2,
      onlineSft: true,
    });
    await agent.warmStart();
    agent.eval();
    expect(replies.map((reply) => reply[4])).toContain(await agent.act(0));
    await agent.terminateEpisode();
    agent.train();
    let metrics;
    for (let round = 0; round < 32; round++) {
      await agent.act(round % 2);
      agent.assignReward(round % 3);
      metrics = await agent.terminateEpisode();
    }
    expect(metrics).toHaveProperty("sft/loss");
    expect(metrics?.["replay/size"]).toBeGreaterThan(2);
  });
});
