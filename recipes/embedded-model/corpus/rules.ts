import type { RandomStream } from "../../../src/tensor/random.js";
import { drawStatement, type Statement } from "./quantities.js";
import type { Scene } from "./scene.js";

/** What to answer, said beforehand: one action when a statement holds, another when not. */
export interface Rule {
  readonly text: string;
  readonly skill: string;
  readonly answer: (scene: Scene) => string;
}

/**
 * A rule for a game's actions. Statement and actions are drawn independently, so that over all rules no action goes with
 * any observation.
 */
export function drawRule(scene: Scene, random: RandomStream): Rule | undefined {
  const { quantities, replies } = scene;
  if (quantities === undefined || replies.length > 10) return undefined;
  const statement = drawStatement(quantities, random);
  const [first, second] = random.sampleIndices(replies.length, 2).map((i) => replies[i]);
  return {
    text: ruleText(statement, first, second, random),
    skill: `rule: ${statement.skill}`,
    answer: (now) => (statement.holds(now.quantities!) ? first : second),
  };
}

function ruleText({ subject, complement }: Statement, first: string, second: string, random: RandomStream): string {
  return random.choice([
    `If ${subject} is ${complement} answer ${first}, else ${second}.`,
    `Answer ${first} if ${subject} is ${complement}, otherwise ${second}.`,
    `When ${subject} is ${complement} say ${first}, if not ${second}.`,
  ]);
}
