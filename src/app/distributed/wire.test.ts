import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../test/support/turns.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { RolloutJob, RolloutJobResult } from "../../rl/rollout/rollout-job.js";
import type { Trajectory, Turn } from "../../rl/rollout/trajectory.js";
import { decodeJob, decodeResult, encodeMessage } from "./wire.js";

const state = { env: null, hasStarted: true, random: new RandomStream(0).getState(), episode: null };
const job: RolloutJob = {
  weightsVersion: 0,
  slots: [{ state, firstSeed: 0, record: false }],
  firstSlot: 0,
  work: { turns: 1 },
};
const turn = makeTurn({
  prompt: [0, 9],
  tokens: [7, 8],
  logProbs: [-0.5, 0],
  values: [Number.NaN, 1 / 3],
  allowedTokens: [Int32Array.of(6, 7), Int32Array.of(8)],
  teacherHint: "Stay.",
  recording: {
    observation: "5",
    render: undefined,
    action: undefined,
    distributions: [
      Float32Array.of(0.25, 0.75),
      { ids: Int32Array.of(8), probabilities: Float64Array.of(1), count: 1 },
    ],
  },
});
const trajectory: Trajectory = { turns: [turn], end: "partial", bootstrapPrompt: [3], startsEpisode: true, envSlot: 0 };
const result: RolloutJobResult = { trajectories: [trajectory], finishedEpisodes: [], states: [state] };

const send = async (sent: object) =>
  decodeResult(await encodeMessage({ seconds: 1, result: sent }), { vocabSize: 10, job });

describe("results of games", () => {
  const matchup = { opponent: "past", seat: 1, past: 20 } as const;
  const gameJob: RolloutJob = { ...job, work: { episodes: [{ group: 0, seed: 4, matchup }] } };
  const summary = { opponent: "past" as const, past: 20, seats: [1], returns: [1, -1], illegalMoves: 0 };
  const { envSlot: _, bootstrapPrompt: __, ...whole } = trajectory;
  const played = { ...whole, end: "terminated" as const, group: 0, seat: 1, opponent: "past" as const };
  const finished = { return: -1, turns: 3, end: "terminated" as const, game: summary };
  const games = { trajectories: [played], finishedEpisodes: [finished], states: [state] };
  const sendGames = async (sent: object) =>
    decodeResult(await encodeMessage({ seconds: 1, result: sent }), { vocabSize: 10, job: gameJob });

  it("arrive as they were sent, also where the policy had no turn", async () => {
    expect(await sendGames(games)).toEqual({ seconds: 1, result: games });
    const withoutTurns = { ...games, trajectories: [] };
    expect(await sendGames(withoutTurns)).toEqual({ seconds: 1, result: withoutTurns });
  });

  it("and their jobs travel", async () => {
    const weights = "0".repeat(64);
    const message = { job: { ...gameJob, pastVersion: 20 }, weights, past: weights };
    expect(await decodeJob(await encodeMessage(message))).toEqual(message);
  });

  it.each<[string, object]>([
    ["without a game", { finishedEpisodes: [] }],
    ["against another opponent", { finishedEpisodes: [{ ...finished, game: { ...summary, opponent: "random" } }] }],
    ["against another snapshot", { finishedEpisodes: [{ ...finished, game: { ...summary, past: 0 } }] }],
    ["without a summary", { finishedEpisodes: [{ return: -1, turns: 3, end: "terminated" }] }],
    ["with turns of another seat", { trajectories: [{ ...played, seat: 0 }] }],
    ["with a seat's turns twice", { trajectories: [played, played] }],
    ["of a seat that does not exist", { finishedEpisodes: [{ ...finished, game: { ...summary, seats: [2] } }] }],
  ])("are refused %s", async (_name, change) => {
    await expect(sendGames({ ...games, ...change })).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });
});

describe("results of rollouts", () => {
  it("arrive as they were sent", async () => {
    expect(await send(result)).toEqual({ seconds: 1, result });
  });

  it("lose distributions over large vocabularies", async () => {
    const recording = { ...turn.recording!, distributions: [new Float32Array(10_000)] };
    const decoded = await send({ ...result, trajectories: [{ ...trajectory, turns: [{ ...turn, recording }] }] });
    expect(decoded).toMatchObject({
      result: { trajectories: [{ turns: [{ recording: { distributions: [undefined] } }] }] },
    });
  });

  it.each<[string, Partial<Turn> | object]>([
    ["a token id outside of the vocabulary", { prompt: [10] }],
    ["a token id below 0", { prompt: [-1] }],
    ["a fraction as a token id", { prompt: [0.5] }],
    ["a text as token ids", { prompt: "12" }],
    ["a token that was not allowed", { tokens: [5, 8] }],
    ["a log-probability above 0", { logProbs: [0.5, 0] }],
    ["a log-probability that is not a number", { logProbs: [Number.NaN, 0] }],
    ["too few log-probabilities", { logProbs: [-1] }],
    ["too few values", { values: [1] }],
    ["a reward that is not finite", { reward: Number.POSITIVE_INFINITY }],
    ["a reward beyond the limit", { reward: 1e200 }],
    ["a penalty beyond the limit", { penalty: 1e7 }],
    ["a value beyond 32 bits", { values: [1e39, 0] }],
  ])("are refused with %s", async (_, change) => {
    const sent = { ...result, trajectories: [{ ...trajectory, turns: [{ ...turn, ...change }] }] };
    await expect(send(sent)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });

  it("are refused with the reward that is out of range", async () => {
    const sent = { ...result, trajectories: [{ ...trajectory, turns: [{ ...turn, reward: 1e200 }] }] };
    await expect(send(sent)).rejects.toThrow("The reward 1e+200 must be a finite number from -1000000 to 1000000");
  });

  it.each([
    ["without states", { states: [] }],
    ["without turns", { trajectories: [] }],
    ["of an unknown environment", { trajectories: [{ ...trajectory, envSlot: 1 }] }],
    ["without a bootstrap prompt", { trajectories: [{ ...trajectory, bootstrapPrompt: undefined }] }],
    ["without the totals of an episode", { trajectories: [{ ...trajectory, end: "truncated" }] }],
  ])("are refused %s", async (_, change) => {
    await expect(send({ ...result, ...change })).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });
});

describe("a result that unpacks to much more than it has", () => {
  it.each([
    ["bytes", Buffer.alloc(129 * 2 ** 20, " ")],
    ["objects", Buffer.from(`{"seconds":1,"result":[${"[],".repeat(4_100_000)}[]]}`)],
  ])("is refused: %s", async (_, json) => {
    const payload = deflateSync(json, { level: 1 });
    await expect(decodeResult(payload, { vocabSize: 10, job })).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });
});
