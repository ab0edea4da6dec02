import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TrainableModels } from "../../../test/support/trainable.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { EpisodeSummary } from "../rollout/trajectory.js";
import { League } from "./league.js";

const models = new TrainableModels();
let model: CausalLM;
let folder: string;
beforeAll(async () => {
  model = (await models.open({ maxPositions: 64 })).causalLM;
  folder = await mkdtemp(join(tmpdir(), "league-"));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

const SETTINGS = { opponents: "self,past", snapshotSteps: 2, leagueSize: 3, pastSelection: "uniform" } as const;

async function createLeague(updates: number, settings: object = {}): Promise<League> {
  const league = new League({ ...SETTINGS, ...settings }, 2);
  for (let update = 0; update <= updates; update++) await league.addIfDue(model, update);
  return league;
}

const game = (past: number, seat: number, returns: readonly number[]): EpisodeSummary => ({
  return: returns[seat],
  turns: 2,
  end: "terminated",
  game: { opponent: "past", past, seats: [seat], returns, illegalMoves: 0 },
});

describe("a league", () => {
  it("keeps the first snapshot and the latest ones", async () => {
    const league = await createLeague(9);
    expect(league.snapshots.map(({ updates }) => updates)).toEqual([0, 6, 8]);
  });

  it("takes no snapshots for a league without past opponents", async () => {
    expect((await createLeague(9, { opponents: "self,random" })).snapshots).toEqual([]);
  });

  it("plays against itself before the first snapshot", () => {
    const league = new League({ ...SETTINGS, opponents: "past" }, 2);
    const random = new RandomStream(0);
    expect(league.drawPast([], random)).toBeUndefined();
    expect(league.drawMatchup(undefined, random)).toEqual({ opponent: "self" });
  });

  it("draws opponents by their weights, in both seats", async () => {
    const league = await createLeague(0, { opponents: "self:1,past:2,random:1,minimax:0" });
    const random = new RandomStream(0);
    const past = league.drawPast(league.snapshots, random);
    const drawn = Array.from({ length: 400 }, () => league.drawMatchup(past, random));
    const count = (name: string) => drawn.filter(({ opponent }) => opponent === name).length;
    expect([count("past") > 160, count("self") > 60, count("random") > 60, count("minimax")]).toEqual([
      true,
      true,
      true,
      0,
    ]);
    expect(new Set(drawn.filter(({ opponent }) => opponent === "past").map(({ seat }) => seat)).size).toBe(2);
  });

  it("prefers snapshots that win", async () => {
    const league = await createLeague(4, { pastSelection: "hardest" });
    league.count(Array.from({ length: 200 }, (_, i) => game(i % 2 === 0 ? 0 : 2, 1, i % 2 === 0 ? [-1, 1] : [1, -1])));
    const random = new RandomStream(0);
    const drawn = Array.from({ length: 300 }, () => league.drawPast(league.snapshots, random)!.updates);
    const count = (updates: number) => drawn.filter((other) => other === updates).length;
    expect(count(2)).toBeGreaterThan(2 * count(4));
    expect(count(4)).toBeGreaterThan(2 * count(0));
    expect(count(0)).toBeGreaterThan(0);
  });

  it("is restored from a checkpoint", async () => {
    const league = await createLeague(4);
    league.count([game(2, 0, [1, -1])]);
    await league.save(folder);
    const restored = new League(SETTINGS, 2);
    await restored.load(folder, JSON.parse(JSON.stringify(league.getState())));
    expect(restored.snapshots).toEqual(league.snapshots);
    const state = { snapshots: [{ updates: 7, winRate: 0.5 }] };
    await expect(new League(SETTINGS, 2).load(folder, state)).rejects.toThrow("no snapshot of update 7");
  });
});
