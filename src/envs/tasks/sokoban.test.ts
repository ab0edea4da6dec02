import { describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { solveSokoban } from "../solvers/sokoban-solver.js";
import { SokobanEnv } from "./sokoban.js";
import { applyMove, generateLevel, type SokobanLevel } from "./sokoban-level.js";

const parse = (rows: string[]): SokobanLevel => {
  const cells = Array.from(rows.join(""));
  return {
    size: rows.length,
    ground: cells.map((cell) => (cell === "#" ? "wall" : ".*+".includes(cell) ? "target" : "floor")),
    boxes: cells.flatMap((cell, i) => ("$*".includes(cell) ? [i] : [])),
    player: cells.findIndex((cell) => "@+".includes(cell)),
  };
};

describe("SokobanEnv", () => {
  it("generates levels that are solvable and unsolved", () => {
    const random = new RandomStream(1);
    for (let draw = 0; draw < 60; draw++) {
      const level = generateLevel(6, 1 + (draw % 2), random);
      expect(level?.boxes.some((box) => level.ground[box] === "target")).toBe(false);
      expect(level && solveSokoban(level)?.length).toBeGreaterThan(0);
    }
  });

  it("pushes one box, but not two, nor one into a wall", () => {
    const level = parse(["#####", "#@$-#", "#-$-#", "#-$.#", "#####"]);
    expect(applyMove(level, 3).boxes).toEqual([8, 12, 17]);
    expect(applyMove(applyMove(level, 3), 3)).toEqual(applyMove(level, 3));
    expect(applyMove(level, 0)).toBe(level);
    const below = applyMove(level, 3);
    expect(applyMove(below, 1)).toBe(below);
  });

  it("returns gym-sokoban's rewards along the shortest solution", () => {
    const env = new SokobanEnv({ size: 6, boxes: 2 });
    for (let seed = 0; seed < 10; seed++) {
      env.reset({ seed });
      const level = (env.getState().state as unknown as { state: SokobanLevel }).state;
      const moves = solveSokoban(level) ?? [];
      let total = 0;
      let ended = false;
      for (const move of moves) {
        const { reward, terminated } = env.step(move);
        total += reward;
        ended = terminated;
      }
      expect(ended).toBe(true);
      expect(total).toBeCloseTo(10 + 2 - 0.1 * moves.length, 9);
    }
  });

  it("has a shortest solution, or none", () => {
    const push = parse(["######", "#----#", "#-$--#", "#-@-.#", "#----#", "######"]);
    expect(solveSokoban(push)).toHaveLength(7);
    expect(solveSokoban(parse(["#####", "#$--#", "#-@.#", "#---#", "#####"]))).toBeUndefined();
  });

  it("formats levels in the conventional characters", () => {
    const env = new SokobanEnv();
    const { observation, info } = env.reset({ seed: 2 });
    const rows = env.text.formatObservation(observation, info).split("\n");
    expect(rows).toHaveLength(6);
    expect(rows.join("")).toMatch(/^[#\-.$*@+]{36}$/);
    expect(() => new SokobanEnv({ boxes: 9 })).toThrow(/at most one box for five inner cells/);
  });
});
