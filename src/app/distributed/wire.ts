import { z } from "zod";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { isReward, MAX_RETURN, REWARD_RULE } from "../../envs/index.js";
import { parseBoundedJson } from "../../core/json.js";
import {
  type EpisodeSpec,
  GAME_OPPONENTS,
  type Turn,
  type RolloutJob,
  type RolloutJobResult,
} from "../../rl/rollout/index.js";
import type { GradientJob } from "../../rl/algorithms/index.js";
import { bytesOf, compress, decompress, fromBase64 } from "./encoding.js";
import { gradientJobSchema } from "./gradient-wire.js";

/** A job with 10,000 turns of long prompts has 100 MB; more is an attack or an error. */
const MAX_MESSAGE_BYTES = 128 * 2 ** 20;
/** Arrays, objects and strings of a message: some hundred for each of 10,000 turns. */
const MAX_NODES = 4_000_000;

/** A job as it travels: a part of a rollout, or a micro-batch of an update. */
export type JobMessage = (
  | { readonly job: RolloutJob; readonly gradients?: undefined }
  | { readonly gradients: GradientJob }
) & {
  /** Hash of the weights to use. */
  readonly weights: string;
  /** Hash of the weights of the past opponent, in self-play. */
  readonly past?: string;
};

/** A worker's answer: the result, or the error that the agent or the environment threw. */
export type ResultMessage = (
  | { readonly result: RolloutJobResult }
  | { readonly error: { readonly code: string; readonly message: string } }
) & {
  /** Time that the job took on the worker. */
  readonly seconds: number;
};

/** What the numbers of a result must fit. */
export interface ResultLimits {
  readonly vocabSize: number;
  readonly job: RolloutJob;
}

/**
 * Distributions over larger vocabularies do not travel: those of one turn may have more bytes than
 * all else of a job.
 */
const MAX_DISTRIBUTION = 8192;

/**
 * Encodes a message as compressed JSON; NaN becomes null, and typed arrays become lists or base64.
 */
export async function encodeMessage(message: object): Promise<Uint8Array> {
  return compress(JSON.stringify(encodeArrays(message)));
}

/**
 * Replaces typed arrays. A replacer of JSON.stringify would be called for each token id, which
 * takes longer than all else.
 */
function encodeArrays(value: unknown): unknown {
  if (typeof value !== "object" || value === null || "toJSON" in value) return value;
  if (value instanceof Int32Array) return [...value];
  if (value instanceof Float32Array || value instanceof Float64Array)
    return value.length > MAX_DISTRIBUTION ? null : bytesOf(value).toString("base64");
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(encodeArrays);
  const encoded: Record<string, unknown> = { ...value };
  for (const name in encoded) encoded[name] = encodeArrays(encoded[name]);
  return encoded;
}

async function decodeJson(payload: Uint8Array): Promise<unknown> {
  const json = await decompress(payload, { maxOutputLength: MAX_MESSAGE_BYTES });
  return parseBoundedJson(json.toString(), MAX_NODES);
}

const count = z.int().min(0);
const finite = z.float32();
const episodeReturn = z.number().min(-MAX_RETURN).max(MAX_RETURN);
const rewardError = {
  error: ({ input }: { input?: unknown }) => `The reward ${String(input)} must be ${REWARD_RULE}.`,
};
const reward = z.number(rewardError).refine(isReward, rewardError);
/** One check per list: a result has some 100,000 ids. */
const tokenIds = z.custom<number[]>(
  (ids) => Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id) && id >= 0),
);
const random = z.object({}).loose();
const slotState = z.object({
  env: z.object({ random, state: z.json() }).nullable(),
  hasStarted: z.boolean(),
  random,
  episode: z
    .object({
      promptBuilder: z.object({ conversation: z.any(), observationText: z.string().nullable() }),
      observation: z.json(),
      info: z.record(z.string(), z.unknown()),
      return: episodeReturn,
      turns: count,
    })
    .nullable(),
});
const weights = z.string().regex(/^[0-9a-f]{64}$/);
const opponent = z.enum(GAME_OPPONENTS);
const jobMessage = z.union([
  z.object({ weights, gradients: gradientJobSchema }),
  z.object({
    weights,
    past: weights.optional(),
    job: z.object({
      weightsVersion: count,
      slots: z.array(z.object({ state: slotState, firstSeed: count, record: z.boolean() })).min(1),
      firstSlot: count,
      pastVersion: z.int().optional(),
      work: z.union([
        z.object({ turns: z.int().min(1) }),
        z.object({
          episodes: z
            .array(
              z.object({
                seed: count.optional(),
                group: count.optional(),
                record: z.boolean().optional(),
                matchup: z.object({ opponent, seat: count.optional(), past: z.int().optional() }).optional(),
              }),
            )
            .min(1),
        }),
      ]),
    }),
  }),
]);
const end = z.enum(["terminated", "truncated", "partial"]);
const distribution = z.union([
  z.string().transform((text) => new Float32Array(fromBase64(text, 4))),
  z.object({
    ids: tokenIds.transform((ids) => Int32Array.from(ids)),
    probabilities: z.string().transform((text) => new Float64Array(fromBase64(text, 8))),
    count,
  }),
]);
const turn = z.object({
  prompt: tokenIds,
  tokens: tokenIds,
  logProbs: z.array(finite.max(1e-3)),
  values: z.array(finite.nullable().transform((value) => value ?? Number.NaN)).optional(),
  allowedTokens: z.array(tokenIds.transform((ids) => Int32Array.from(ids))).optional(),
  hasKeptTokens: z.boolean().optional(),
  teacherHint: z.string().optional(),
  actionCandidates: z
    .object({
      sequences: z.array(tokenIds),
      weights: z.array(finite),
      chosen: count,
      probabilities: z.array(finite).optional(),
    })
    .optional(),
  text: z.string(),
  finishReason: z.enum(["stop", "stop_string", "length"]),
  isValid: z.boolean(),
  extraction: z.string().optional(),
  attempts: z.int().min(1),
  penalty: reward,
  recording: z
    .object({
      observation: z.string(),
      render: z.string().optional(),
      action: z.string().optional(),
      distributions: z.array(distribution.nullable().transform((value) => value ?? undefined)),
    })
    .optional(),
  // The environment's reward minus the penalty.
  reward: z.number(rewardError).refine((value) => isReward(value / 2), rewardError),
});
const game = z.object({
  opponent,
  past: z.int().optional(),
  seats: z.array(count).min(1),
  returns: z.array(episodeReturn).min(2),
  illegalMoves: count,
});
const seconds = finite.min(0);
const resultMessage = z.union([
  z.object({ seconds, error: z.object({ code: z.string().max(100), message: z.string().max(10_000) }) }),
  z.object({
    seconds,
    result: z.object({
      trajectories: z.array(
        z.object({
          turns: z.array(turn).min(1),
          end,
          bootstrapPrompt: tokenIds.optional(),
          startsEpisode: z.boolean(),
          envSlot: count.optional(),
          group: count.optional(),
          seed: count.optional(),
          seat: count.optional(),
          opponent: opponent.optional(),
          final: z.object({ render: z.string().optional(), observation: z.string().optional() }).optional(),
        }),
      ),
      finishedEpisodes: z.array(
        z.object({
          return: episodeReturn,
          turns: z.int().min(1),
          end,
          isSuccess: z.boolean().optional(),
          game: game.optional(),
        }),
      ),
      states: z.array(slotState),
    }),
  }),
]);

/** First byte of an answer without a result; that of compressed ones is another. */
const FAILURE_MARK = "!";

/** Encodes the answer of a worker that could not run a job. */
export const encodeFailure = (reason: string): Uint8Array => Buffer.from(FAILURE_MARK + reason);

/** Returns why a worker could not run a job; undefined for other answers. */
export function readFailure(payload: Uint8Array): string | undefined {
  return payload[0] === FAILURE_MARK.charCodeAt(0) ? Buffer.from(payload).toString("utf8", 1, 500) : undefined;
}

/** Decodes a job. @throws FILE_CORRUPT for anything else. */
export async function decodeJob(payload: Uint8Array): Promise<JobMessage> {
  try {
    return jobMessage.parse(await decodeJson(payload)) as unknown as JobMessage;
  } catch (error) {
    throw new LlamaGymError("FILE_CORRUPT", `The job is not one of this version: ${errorMessage(error)}`);
  }
}

/**
 * Decodes a result and checks its counts, numbers and token ids. @throws FILE_CORRUPT for a result
 * that cannot be used.
 */
export async function decodeResult(payload: Uint8Array, limits: ResultLimits): Promise<ResultMessage> {
  try {
    const message = resultMessage.parse(await decodeJson(payload)) as unknown as ResultMessage;
    if ("result" in message) checkResult(message.result, limits);
    return message;
  } catch (error) {
    throw new LlamaGymError("FILE_CORRUPT", errorMessage(error).slice(0, 500));
  }
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new LlamaGymError("FILE_CORRUPT", message);
}

function checkResult(result: RolloutJobResult, { vocabSize, job }: ResultLimits): void {
  const { trajectories, finishedEpisodes, states } = result;
  const { slots, work } = job;
  check(states.length === slots.length, "States of environments are missing.");
  const isSelfPlay = "episodes" in work && work.episodes.some(({ matchup }) => matchup !== undefined);
  const finished = trajectories.filter(({ end: reason }) => reason !== "partial");
  check(isSelfPlay || finished.length === finishedEpisodes.length, "Totals of episodes are missing.");
  for (const { end: reason, bootstrapPrompt = [], envSlot, turns } of trajectories) {
    check((reason === "terminated") === (bootstrapPrompt.length === 0), "A bootstrap prompt is missing.");
    check(isVocabulary(bootstrapPrompt, vocabSize), "A token id is not in the vocabulary.");
    check("turns" in work === (envSlot !== undefined) && (envSlot ?? 0) < slots.length, "An environment is unknown.");
    for (const turnOfTrajectory of turns) checkTurn(turnOfTrajectory, vocabSize);
  }
  if ("turns" in work) {
    const numTurns = trajectories.reduce((sum, { turns }) => sum + turns.length, 0);
    return check(numTurns >= work.turns, "Turns are missing.");
  }
  if (isSelfPlay) return checkGames(result, work.episodes);
  const hasAll = finished.length === work.episodes.length && trajectories.length === finished.length;
  check(hasAll && work.episodes.every(({ group }, i) => trajectories[i].group === group), "Episodes are missing.");
}

/** A game has a trajectory for each seat of the policy that had a turn. */
function checkGames({ trajectories, finishedEpisodes }: RolloutJobResult, specs: readonly EpisodeSpec[]): void {
  const hasAll = finishedEpisodes.length === specs.length;
  const isPlayed = finishedEpisodes.every(
    ({ game: summary }, i) =>
      summary?.opponent === specs[i].matchup?.opponent &&
      summary?.past === specs[i].matchup?.past &&
      summary!.seats.every((seat) => seat < summary!.returns.length),
  );
  check(hasAll && isPlayed, "Games are missing.");
  const key = (group: number | undefined, seat: number | undefined) => `${group} ${seat}`;
  const left = new Map<string, number>();
  finishedEpisodes.forEach(({ game: summary }, i) => {
    for (const seat of summary!.seats) {
      const name = key(specs[i].group, seat);
      left.set(name, (left.get(name) ?? 0) + 1);
    }
  });
  for (const { group, seat, end: reason } of trajectories) {
    const name = key(group, seat);
    check(reason === "terminated" && (left.get(name) ?? 0) > 0, "A game has turns of an unknown seat.");
    left.set(name, left.get(name)! - 1);
  }
}

function checkTurn(
  { prompt, tokens, logProbs, values, allowedTokens, actionCandidates }: Turn,
  vocabSize: number,
): void {
  const decisions = actionCandidates === undefined ? tokens.length : 1;
  check(tokens.length > 0 && logProbs.length === decisions, "Log-probabilities do not match the tokens.");
  check((values ?? tokens).length === tokens.length, "Values do not match the tokens.");
  check((allowedTokens ?? tokens).length === tokens.length, "Allowed tokens do not match the tokens.");
  const { sequences, weights, chosen } = actionCandidates ?? { sequences: [[]], weights: [0], chosen: 0 };
  check(sequences.length === weights.length && chosen < sequences.length, "Action candidates do not match.");
  const lists = [prompt, tokens, ...(allowedTokens ?? []).map((ids) => ids ?? []), ...sequences];
  check(
    lists.every((ids) => isVocabulary(ids, vocabSize)),
    "A token id is not in the vocabulary.",
  );
  check(
    (allowedTokens ?? []).every((ids, i) => ids?.includes(tokens[i]) !== false),
    "A token was not allowed.",
  );
}

function isVocabulary(ids: Iterable<number>, vocabSize: number): boolean {
  for (const id of ids) if (id >= vocabSize) return false;
  return true;
}
