import { expect, it } from "vitest";
import { make } from "../../envs.js";
import { TransformReward } from "../../envs/wrappers/reward.js";
import {
  expertPolicy,
  randomPolicy,
  recordDemonstrations,
  recordEpisodes,
  type RecordedEpisode,
} from "./record-demonstrations.js";

it.each([1e200, Infinity, Number.NaN])("refuses to record a reward of %d", async (value) => {
  const makeEnv = () => new TransformReward(make("FrozenLake-v1"), { reward: () => value });
  await expect(recordDemonstrations(makeEnv, expertPolicy, { episodes: 1 })).rejects.toMatchObject({
    code: "ENV_FAILED",
    message: expect.stringContaining(`returned the reward ${value} (number)`) as string,
  });
});

it("records episodes in order, whichever ends first", async () => {
  const makeEnv = () => make("CartPole-v1");
  const options = { episodes: 20, seed: 3 };
  const received: RecordedEpisode[] = [];
  const receive = async (episode: RecordedEpisode) => {
    await new Promise((resolve) => setTimeout(resolve, episode.turns.length % 3));
    received.push(episode);
  };
  await recordEpisodes(makeEnv, randomPolicy, { ...options, numEnvs: 7 }, receive);
  expect(received).toHaveLength(20);
  expect(received).toEqual(await recordDemonstrations(makeEnv, randomPolicy, options));
});

it("ends after the episodes that run when it is aborted, also with a policy that never waits", async () => {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 20);
  const recorded = await recordDemonstrations(() => make("CartPole-v1"), randomPolicy, {
    episodes: 100_000,
    numEnvs: 2,
    signal: abort.signal,
  });
  expect(recorded.length).toBeLessThan(100_000);
});

it("ends after the episodes that run when an environment does not open", async () => {
  let numEnvs = 0;
  const makeEnv = async () => {
    if (++numEnvs === 1) return make("CartPole-v1");
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new Error("no level");
  };
  let numReceived = 0;
  const options = { episodes: 100_000, numEnvs: 2 };
  await expect(recordEpisodes(makeEnv, randomPolicy, options, () => void numReceived++)).rejects.toThrow("no level");
  expect(numReceived).toBeLessThan(100_000);
});

it("receives all other episodes before the error of an environment that fails", async () => {
  let numEnvs = 0;
  const makeEnv = () => {
    const env = make("CartPole-v1");
    if (++numEnvs === 2) env.step = () => Promise.reject(new Error("no level"));
    return env;
  };
  const returns: number[] = [];
  const receive = ({ return: value }: RecordedEpisode) => void returns.push(value);
  const options = { episodes: 100, seed: 3, numEnvs: 4 };
  await expect(recordEpisodes(makeEnv, randomPolicy, options, receive)).rejects.toMatchObject({ code: "ENV_FAILED" });
  const all = await recordDemonstrations(() => make("CartPole-v1"), randomPolicy, { episodes: 4, seed: 3 });
  expect(returns).toEqual([0, 2, 3].map((episode) => all[episode].return));
});
