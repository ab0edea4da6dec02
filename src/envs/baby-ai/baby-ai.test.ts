import { describe, expect, it } from "vitest";
import { make } from "../registry/make.js";
import { BabyAiEnv } from "./baby-ai.js";
import type { BabyAiObservation } from "./view.js";
import { LEVEL_NAMES } from "./draw-level.js";
import { applyAction, EMPTY, NO_OBJECT, WALL, type WorldObject, type World } from "./world.js";

// Recordings of minigrid and GLAM are compared in test/parity/worlds.test.ts.

const [FORWARD, PICK_UP, DROP, TOGGLE] = [2, 3, 4, 5];

/** A corridor: the agent at its left end faces right, things are in the cells after it. */
function createCorridor(things: readonly (WorldObject | undefined)[], hidden: readonly WorldObject[] = []): World {
  const all = [...things.filter((thing) => thing !== undefined), ...hidden];
  const cells = [WALL, EMPTY, ...things.map((thing) => (thing === undefined ? EMPTY : all.indexOf(thing))), WALL];
  const wall = cells.map(() => WALL);
  return {
    width: cells.length,
    height: 3,
    cells: [...wall, ...cells, ...wall],
    things: all,
    agent: { x: 1, y: 1, direction: 0 },
    carrying: NO_OBJECT,
  };
}

const act = (world: World, ...actions: number[]) => actions.reduce(applyAction, world);

describe("actions", () => {
  const key: WorldObject = { kind: "key", color: "red" };
  const lockedDoor: WorldObject = { kind: "door", color: "red", state: "locked" };

  it("a locked door opens with the key of its color, which stays in the hands, and is never locked again", () => {
    const world = act(createCorridor([key, lockedDoor]), TOGGLE, PICK_UP, FORWARD);
    expect(world).toMatchObject({ carrying: 0, agent: { x: 2 } });
    const open = act(world, TOGGLE);
    expect(open.things[1].state).toBe("open");
    expect(act(open, TOGGLE).things[1].state).toBe("closed");
    expect(act(open, FORWARD).agent.x).toBe(3);
  });

  it("a key of another color opens nothing", () => {
    const world = act(createCorridor([{ kind: "key", color: "blue" }, lockedDoor]), PICK_UP, FORWARD, TOGGLE);
    expect(world.things[1].state).toBe("locked");
  });

  it("a toggled box is replaced by what is in it", () => {
    const box: WorldObject = { kind: "box", color: "green", contents: 1 };
    const world = act(createCorridor([box], [{ kind: "key", color: "red" }]), TOGGLE);
    expect(world.cells.includes(1)).toBe(true);
    expect(act(createCorridor([{ kind: "box", color: "green" }]), TOGGLE, FORWARD).agent.x).toBe(2);
  });

  it("things are dropped into empty cells only, and one is carried at a time", () => {
    const ball: WorldObject = { kind: "ball", color: "blue" };
    const held = act(createCorridor([ball, key]), PICK_UP, FORWARD);
    expect(act(held, PICK_UP).carrying).toBe(0);
    expect(act(held, DROP).carrying).toBe(0);
    expect(act(createCorridor([ball]), PICK_UP, DROP).carrying).toBe(NO_OBJECT);
    expect(act(createCorridor([ball]), FORWARD).agent.x).toBe(1);
  });
});

describe("the text", () => {
  it("has the goal, the hands, the walls and all things in view", () => {
    const { text } = make<BabyAiObservation, number>("BabyAI-GoToObj-v0");
    const image = new Uint8Array(147);
    const set = (column: number, row: number, code: readonly number[]) => image.set(code, 3 * (7 * column + row));
    for (let i = 0; i < 49; i++) image.set([1, 0, 0], 3 * i);
    set(3, 6, [5, 2, 0]);
    set(3, 4, [2, 5, 0]);
    set(2, 5, [6, 4, 0]);
    set(6, 6, [4, 0, 2]);
    expect(text!.formatObservation({ image, direction: 0, mission: "go to the red door" }, {})).toBe(
      "Goal: go to the red door.\nYou carry a blue key. Wall 2 ahead. Yellow ball 1 left 1 ahead, locked red door 3 right.",
    );
  });

  it("has the turns before with `observations`", () => {
    const env = new BabyAiEnv({ level: "GoToObj", observations: 3 });
    env.reset({ seed: 3 });
    const steps = [0, 1, 0].map((action) => env.step(action));
    const format = ({ observation, info }: (typeof steps)[number]) =>
      env.text.formatObservation(observation, info).split("\n");
    expect(format(steps[0])).toHaveLength(3);
    const [goal, first, second, now] = format(steps[2]);
    expect(goal).toMatch(/^Goal: go to the /);
    expect(first).toMatch(/ You chose right\.$/);
    expect(second).toMatch(/ You chose left\.$/);
    expect(now).not.toContain("You chose");
  });
});

describe("levels", () => {
  it.each(LEVEL_NAMES)("%s is solved by the expert within the limit", (level) => {
    const env = new BabyAiEnv({ level });
    for (let seed = 0; seed < 10; seed++) {
      env.reset({ seed });
      let result = env.step(env.chooseExpertAction());
      while (!result.terminated && !result.truncated) result = env.step(env.chooseExpertAction());
      expect(result.reward).toBeGreaterThan(0);
    }
  });

  it("are solved by the expert from positions that random actions lead to", () => {
    const env = new BabyAiEnv({ level: "UnlockLocalDist" });
    env.actionSpace.seed(1);
    for (let seed = 0; seed < 10; seed++) {
      env.reset({ seed });
      for (let i = 0; i < 100; i++) if (env.step(env.actionSpace.sample()).terminated) env.reset();
      let result = env.step(env.chooseExpertAction());
      while (!result.terminated && !result.truncated) result = env.step(env.chooseExpertAction());
      expect(result.terminated).toBe(true);
    }
  });

  it("end at their step limit, which is another for each mission", () => {
    const env = new BabyAiEnv({ level: "MixedTrainLocal", kind: "putnext" });
    env.reset({ seed: 1 });
    let steps = 0;
    for (let isOver = false; !isOver; steps++) isOver = env.step(0).truncated;
    expect(steps).toBe(128);
    expect(() => env.step(0)).toThrow(/ended/);
  });

  it.each([
    [{ level: "GoToMoon" }, /no level "GoToMoon"/],
    [{ observations: 4 }, /observations must be/],
    [{ kind: "sing" as "open" }, /kind must be one of/],
    [{ level: "GoToObj", kind: "open" as const }, /kind is for mixed levels/],
  ])("are refused: %j", (options, message) => {
    expect(() => new BabyAiEnv(options)).toThrow(message);
  });
});
