import type { EpisodeSpec } from "./rollout-slot.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TrainableModels } from "../../../test/support/trainable.js";
import { asEnv, KuhnPoker, Nim, TicTacToe, createRandomOpponent, type RulesGame } from "../../envs/games/index.js";
import { openEnv } from "../../envs/registry/open-env.js";
import type { LanguageModel } from "../../generation/index.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { JsonValue } from "../../core/json.js";
import { TextAgent, type ActionMode } from "../agent/text-agent.js";
import { GamePlayers } from "../train/self-play.js";
import { RolloutCollector } from "./rollout-collector.js";

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => {
  model = await models.open({ maxPositions: 512, scale: 0.2 });
});
afterAll(() => models.close());

function createCollector(
  createGame: () => RulesGame<JsonValue>,
  { actionMode = "scored", slots = 2 }: { readonly actionMode?: ActionMode; readonly slots?: number } = {},
) {
  const agent = new TextAgent(model, createGame().text, { actionMode, generation: { maxNewTokens: 4 } });
  const players = new GamePlayers(agent);
  const envSlots = Array.from({ length: slots }, (_, index) => {
    const game = createGame();
    return players.createSlot(asEnv(game, createRandomOpponent(game)), new RandomStream(3, [index]), { index });
  });
  return { players, collector: new RolloutCollector(envSlots) };
}

const kuhn = () => new KuhnPoker();
const ticTacToe = () => new TicTacToe();
const specs = (count: number, more: Omit<EpisodeSpec, "seed"> = {}) =>
  Array.from({ length: count }, (_, seed) => ({ seed, ...more }));
const rewardOf = (turns: readonly { readonly reward: number }[]) => turns.reduce((sum, { reward }) => sum + reward, 0);

describe("a game slot", () => {
  it("gives each seat a trajectory whose rewards are all that the seat wins", async () => {
    const { collector } = createCollector(kuhn);
    const { trajectories, finishedEpisodes } = await collector.collectEpisodes(specs(20));
    expect(finishedEpisodes).toHaveLength(20);
    expect(trajectories).toHaveLength(40);
    for (const [i, { game, return: mean }] of finishedEpisodes.entries()) {
      const [first, second] = trajectories.slice(2 * i, 2 * i + 2);
      expect([first.seat, second.seat]).toEqual([0, 1]);
      expect([rewardOf(first.turns), rewardOf(second.turns)]).toEqual(game!.returns);
      expect([game!.returns[0] + game!.returns[1], mean]).toEqual([0, 0]);
      expect([first.end, second.end, first.seed]).toEqual(["terminated", "terminated", i]);
    }
  });

  it("shows each seat its own card", async () => {
    const { collector } = createCollector(kuhn);
    const { trajectories } = await collector.collectEpisodes(specs(6));
    for (let i = 0; i < 12; i += 2) {
      const cards = trajectories.slice(i, i + 2).map(({ turns }) => {
        const text = model.tokenizer.decode([...turns[0].prompt]);
        return /Your card is ([JQK])/.exec(text)![1];
      });
      expect(cards[0]).not.toBe(cards[1]);
    }
  });

  it("trains one seat against random play, minimax and an earlier version", async () => {
    const { collector, players } = createCollector(ticTacToe);
    const { parameters, runtime } = model.causalLM;
    await players.loadPast((await runtime.read(parameters.values)).data as Float32Array);
    for (const opponent of ["random", "minimax", "past"] as const) {
      const matchup = { opponent, seat: 1 };
      const { trajectories, finishedEpisodes } = await collector.collectEpisodes(specs(4, { matchup }));
      expect(trajectories.map(({ seat, opponent: other }) => [seat, other])).toEqual(
        Array.from({ length: 4 }, () => [1, opponent]),
      );
      expect(finishedEpisodes.map(({ game }) => game!.seats)).toEqual(Array.from({ length: 4 }, () => [1]));
      finishedEpisodes.forEach(({ game, return: reward }, i) => {
        expect([reward, rewardOf(trajectories[i].turns)]).toEqual([game!.returns[1], game!.returns[1]]);
      });
    }
    await players.release();
  });

  it("plays with the values of the earlier version that was loaded last", async () => {
    const { collector, players } = createCollector(kuhn, { slots: 1 });
    const { parameters, runtime } = model.causalLM;
    const values = ((await runtime.read(parameters.values)).data as Float32Array).slice();
    const play = async (past: Float32Array) => {
      await players.loadPast(past);
      collector.setState([{ env: null, hasStarted: false, random: new RandomStream(5).getState(), episode: null }]);
      const matchup = { opponent: "past" as const, seat: 0 };
      const { finishedEpisodes } = await collector.collectEpisodes(specs(30, { matchup }));
      return finishedEpisodes.map(({ game }) => game!.returns[0]);
    };
    const same = await play(values);
    expect(await play(values.slice())).toEqual(same);
    expect(await play(values.map((value, i) => value + Math.sin(i)))).not.toEqual(same);
    await players.release();
  });

  it("loses a game by a completion without a move, which is counted", async () => {
    const { collector } = createCollector(ticTacToe, { actionMode: "free" });
    const { trajectories, finishedEpisodes } = await collector.collectEpisodes(specs(8));
    const lost = finishedEpisodes.filter(({ game }) => game!.illegalMoves > 0);
    expect(lost.length).toBeGreaterThan(0);
    for (const { game } of lost) expect([...game!.returns].sort((a, b) => a - b)).toEqual([-1, 1]);
    expect(trajectories.every(({ turns }) => turns.length > 0)).toBe(true);
  });

  it("has no trajectory of a seat without a turn", async () => {
    const { collector } = createCollector(() => new Nim({ piles: [1] }));
    const both = await collector.collectEpisodes(specs(2));
    expect(both.trajectories.map(({ seat }) => seat)).toEqual([0, 0]);
    const second = await collector.collectEpisodes(specs(2, { matchup: { opponent: "random", seat: 1 } }));
    expect(second.trajectories).toEqual([]);
    expect(second.finishedEpisodes.map(({ return: reward }) => reward)).toEqual([-1, -1]);
  });

  it("gives the same games in any number of slots for greedy play", async () => {
    const agent = new TextAgent(model, kuhn().text, { actionMode: "scored", generation: { temperature: 1e-6 } });
    const collect = async (slots: number) => {
      const players = new GamePlayers(agent);
      const envSlots = Array.from({ length: slots }, (_, index) => {
        const game = new KuhnPoker();
        return players.createSlot(asEnv(game, createRandomOpponent(game)), new RandomStream(3, [index]), { index });
      });
      const { finishedEpisodes } = await new RolloutCollector(envSlots).collectEpisodes(specs(9));
      return finishedEpisodes;
    };
    expect(await collect(4)).toEqual(await collect(1));
  });

  it("refuses an environment with one player", async () => {
    const agent = new TextAgent(model, kuhn().text, { actionMode: "scored" });
    const env = await openEnv("FrozenLake-v1");
    expect(() => new GamePlayers(agent).createSlot(env, new RandomStream(0), { index: 0 })).toThrow("has one player");
  });
});
