import { BabyAiEnv } from "../../../src/envs/baby-ai/baby-ai.js";
import type { BabyAiObservation } from "../../../src/envs/baby-ai/view.js";
import type { MixedKind } from "../../../src/envs/baby-ai/mixed-levels.js";
import { readScene, VIEW_SIZE, type GridScene } from "../../../src/envs/baby-ai/view.js";
import { COLORS, DOOR_STATES, WALL, type World } from "../../../src/envs/baby-ai/world.js";
import type { Comparison } from "./comparison.js";

type RecordedStep = readonly [
  text: string[],
  image: string,
  direction: number,
  reward: number,
  terminated: boolean,
  truncated: boolean,
];

interface BabyAiEpisode {
  readonly grid: readonly [cells: string, column: number, row: number, direction: number];
  readonly mission: string;
  readonly max_steps: number;
  readonly text: string[];
  readonly image: string;
  readonly actions: number[];
  readonly steps: RecordedStep[];
}

/** Episodes of one level and seed; only the first reset has the seed. */
export interface BabyAiCase {
  readonly level: string;
  readonly kind?: MixedKind;
  readonly seed: string;
  readonly moves: string;
  readonly episodes: BabyAiEpisode[];
}

/** Plays the actions of a case and compares the level, each observation and each outcome. */
export function* replayBabyAi({ level, kind, seed, episodes }: BabyAiCase): Generator<Comparison> {
  const env = new BabyAiEnv({ level: level.replace(/^BabyAI-|-v\d+$/g, ""), kind });
  let isFirst = true;
  for (const [number, episode] of episodes.entries()) {
    const { observation } = env.reset(isFirst ? { seed: BigInt(seed) } : {});
    isFirst = false;
    const saved = env.getState().state as unknown as { state: { world: World; maxSteps: number } };
    const { world, maxSteps } = saved.state;
    const where = `episode ${number}`;
    yield { where: `${where} grid`, actual: encodeWorld(world), expected: episode.grid };
    yield { where: `${where} mission`, actual: observation.mission, expected: episode.mission };
    yield { where: `${where} limit`, actual: maxSteps, expected: episode.max_steps };
    yield compareView(where, observation, episode.text, episode.image);
    for (const [i, action] of episode.actions.entries()) {
      const [text, image, direction, ...outcome] = episode.steps[i];
      const step = env.step(action);
      const at = `${where} step ${i}`;
      yield compareView(at, step.observation, text, image);
      yield {
        where: `${at} outcome`,
        actual: [step.observation.direction, step.reward, step.terminated, step.truncated],
        expected: [direction, ...outcome],
      };
    }
  }
}

/** Compares the image, and the facts of the sentences with those that our text is made from. */
function compareView(where: string, { image }: BabyAiObservation, sentences: string[], recorded: string): Comparison {
  const order = Array.from(
    { length: VIEW_SIZE ** 2 },
    (_, i) => (i % VIEW_SIZE) * VIEW_SIZE + Math.floor(i / VIEW_SIZE),
  );
  const cells = order.map((cell) => Array.from(image.subarray(3 * cell, 3 * cell + 3), (digit) => digit.toString(36)));
  return {
    where,
    actual: [cells.flat().join(""), listFacts(readScene(image))],
    expected: [recorded, sentences.map(readSentence)],
  };
}

/** The facts of a scene in the order of BabyAI-Text's sentences. */
function listFacts({ carrying, walls, things }: GridScene): unknown[] {
  const { ahead, left, right } = walls;
  const wallFacts = [
    ["wall", ahead, 0],
    ["wall", 0, left === undefined ? undefined : -left],
    ["wall", 0, right],
  ];
  return [
    ...(carrying === undefined ? [] : [["carry", carrying.color, carrying.kind]]),
    ...wallFacts.filter((fact) => !fact.includes(undefined)),
    ...things.map((sight) => [sight.kind, sight.color, sight.state ?? null, sight.ahead, sight.right]),
  ];
}

/** Reads the facts of a sentence. */
function readSentence(sentence: string): unknown[] {
  const words = sentence.split(" ");
  const distance = (side: string) => Number(new RegExp(`(\\d+) steps? ${side}`).exec(sentence)?.[1] ?? 0);
  const [ahead, right] = [distance("forward"), distance("right") - distance("left")];
  if (words[1] === "carry") return ["carry", words[3], words[4]];
  if (words[3] === "wall") return ["wall", ahead, right];
  const [, state, color, kind] = /^You see a (?:(open|closed|locked) )?(\w+) (\w+) /.exec(sentence) ?? [];
  return [kind, color, state ?? null, ahead, right];
}

/** Encodes the grid as the recordings do: type, color and state of each cell as a digit. */
function encodeWorld({ cells, things, agent }: World): unknown[] {
  const types = { door: 4, key: 5, ball: 6, box: 7 };
  const digits = cells.map((content) => {
    if (content < 0) return content === WALL ? "250" : "100";
    const { kind, color, state } = things[content];
    return `${types[kind]}${COLORS.indexOf(color)}${state === undefined ? 0 : DOOR_STATES.indexOf(state)}`;
  });
  return [digits.join(""), agent.x, agent.y, agent.direction];
}
