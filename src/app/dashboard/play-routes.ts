import type { Hono } from "hono";
import { streamText } from "hono/streaming";
import { z } from "zod";
import { LlamaGymError } from "../../core/errors.js";
import { stream } from "../../core/random/streams.js";
import { CompletionSampler, EnvSlot, type Trajectory } from "../../rl/rollout/index.js";
import { recordRollout } from "../../rl/train/index.js";
import type {
  PlayChatRequest,
  CompareRequest,
  CompareResponse,
  EpisodeDetail,
  PlayModel,
  PlayRequest,
  PlayStepRequest,
} from "./api.js";
import { generationSettings } from "../../generation/index.js";
import { settingField } from "../server/setting-field.js";
import { parseBody } from "./parse-body.js";
import { PlayModels } from "./play-models.js";
import { PlaySession, withTemperature } from "./play-session.js";
import type { RunsFolder } from "./run-files.js";

/** Sessions that stay open; the one that was used longest ago is closed for another. */
const MAX_SESSIONS = 4;
const MAX_TEXT = 100_000;

const seed = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const temperature = settingField(generationSettings.temperature);
const modelSchema = z.object({ run: z.string().max(1_000), checkpoint: z.string().max(100).optional() });
const playSchema = modelSchema.extend({ seed: seed.optional() }) satisfies z.ZodType<PlayRequest>;
const resetSchema = z.object({ seed: seed.optional() });
const stepSchema = z.object({
  completion: z.string().min(1).max(MAX_TEXT).optional(),
  observation: z.string().max(MAX_TEXT).optional(),
  temperature: temperature.optional(),
}) satisfies z.ZodType<PlayStepRequest>;
const chatSchema = z.object({
  messages: z
    .array(z.object({ role: z.enum(["system", "user", "assistant"]), content: z.string().max(MAX_TEXT) }))
    .min(1)
    .max(1_000),
  temperature: temperature.optional(),
  maxNewTokens: z.int().min(1).max(4_096).optional(),
}) satisfies z.ZodType<PlayChatRequest>;
const compareSchema = z.object({
  a: modelSchema,
  b: modelSchema,
  seed,
  temperature: temperature.optional(),
  maxTurns: z.int().min(1).max(1_000).optional(),
}) satisfies z.ZodType<CompareRequest>;

/**
 * Adds the routes that run a model: play, chat and comparison. Returns a function that closes the
 * models.
 */
export function addPlayRoutes(api: Hono, runs: RunsFolder, allowsFiles: boolean): () => Promise<void> {
  const models = new PlayModels(runs, allowsFiles);
  const sessions = new Map<string, { readonly session: PlaySession; readonly release: () => void }>();

  const closeSession = async (id: string): Promise<void> => {
    const entry = sessions.get(id);
    sessions.delete(id);
    await entry?.session.close();
    entry?.release();
  };
  const find = (id: string): PlaySession => {
    const entry = sessions.get(id);
    if (entry === undefined)
      throw new LlamaGymError("FILE_NOT_FOUND", "There is no such session: it was closed. Start another one.");
    sessions.delete(id);
    sessions.set(id, entry);
    return entry.session;
  };

  api.post("/play", async (c) => {
    const { seed: firstSeed, ...model } = await parseBody(c, playSchema);
    const { agent, release } = await models.acquire(model);
    const session = new PlaySession(crypto.randomUUID(), agent);
    sessions.set(session.id, { session, release });
    for (const id of [...sessions.keys()].slice(0, -MAX_SESSIONS)) await closeSession(id);
    return c.json(await session.reset(firstSeed));
  });
  api.post("/play/:session/reset", async (c) =>
    c.json(await find(c.req.param("session")).reset((await parseBody(c, resetSchema)).seed)),
  );
  api.post("/play/:session/step", async (c) =>
    c.json(await find(c.req.param("session")).step(await parseBody(c, stepSchema))),
  );
  api.post("/play/:session/chat", async (c) => {
    const reply = find(c.req.param("session")).chat(await parseBody(c, chatSchema), c.req.raw.signal);
    return streamText(c, async (output) => {
      try {
        for await (const piece of reply) await output.write(piece);
      } catch (error) {
        // The status was sent before the model began.
        await output.write(`\n[${String(error)}]`);
      }
    });
  });
  api.delete("/play/:session", async (c) => {
    await closeSession(c.req.param("session"));
    return c.body(null, 204);
  });
  api.post("/compare", async (c) => c.json(await compare(models, await parseBody(c, compareSchema))));
  return async () => {
    for (const id of sessions.keys()) await closeSession(id);
    await models.close();
  };
}

/** Plays the same start with two models. */
async function compare(models: PlayModels, request: CompareRequest): Promise<CompareResponse> {
  const a = await playEpisode(models, request.a, request);
  const b = await playEpisode(models, request.b, request);
  return { a, b, partsAt: findDifference(a, b) };
}

async function playEpisode(models: PlayModels, model: PlayModel, request: CompareRequest): Promise<EpisodeDetail> {
  const { agent: player, release } = await models.acquire(model);
  try {
    const { agent, envs } = player;
    const random = stream(request.seed, "play");
    const sampler = new CompletionSampler(
      agent.model,
      withTemperature(agent.settings.completion, request.temperature ?? 0),
    );
    const env = await envs.make();
    try {
      const newEpisode = () => agent.newEpisode(random, "train", { sampler });
      const slot = new EnvSlot(env, { newEpisode, random, settings: agent.settings, index: 0, record: true });
      await slot.start({ seed: request.seed });
      let trajectory: Trajectory | undefined;
      for (let turn = 0; turn < (request.maxTurns ?? 200) && trajectory === undefined; turn++)
        trajectory = (await slot.step())?.trajectories[0];
      trajectory ??= slot.takeTrajectory();
      const options = { step: 0, mode: "all", tokenizer: agent.model.tokenizer } as const;
      const { episodes, vocabulary } = recordRollout([trajectory], options)!;
      return { ...episodes[0], vocabulary };
    } finally {
      await env.close();
    }
  } finally {
    release();
  }
}

/** Returns the first token at which two episodes differ. */
function findDifference(a: EpisodeDetail, b: EpisodeDetail): CompareResponse["partsAt"] {
  for (let turn = 0; turn < Math.max(a.turns.length, b.turns.length); turn++) {
    const [first, second] = [a.turns.at(turn)?.tokens ?? [], b.turns.at(turn)?.tokens ?? []];
    const token = Array.from({ length: Math.max(first.length, second.length) }, (_, i) => i).find(
      (i) => first[i] !== second[i],
    );
    if (token !== undefined) return { turn, token };
  }
  return null;
}
