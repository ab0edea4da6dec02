import type { Info } from "../info.js";
import type { TextInterface } from "../text-interface.js";
import { createChoiceText } from "../text-parsing.js";
import { readScene, type BabyAiObservation, type Sight } from "./view.js";
import { ACTIONS } from "./world.js";

/** An earlier observation and the action that followed. */
export type PastTurn = {
  readonly scene: string;
  readonly action: number;
};

const SYSTEM_PROMPT =
  "Reach the goal in a grid of rooms. Turn left or right, go forward, pick up the thing ahead, drop it ahead, or toggle a door or box ahead; a locked door needs the key of its color in your hands. Numbers are steps. Answer left, right, forward, pick up, drop or toggle.";

/**
 * Creates the text interface: the goal, the past turns in the info's history, and what is in view.
 */
export function createBabyAiText(): TextInterface<BabyAiObservation, number> {
  return createChoiceText({
    systemPrompt: SYSTEM_PROMPT,
    formatObservation: ({ image, mission }: BabyAiObservation, info: Info) => {
      const history = (info.history ?? []) as readonly PastTurn[];
      const past = history.map(({ scene, action }) => `${scene} You chose ${ACTIONS[action]}.`);
      return [`Goal: ${mission}.`, ...past, formatScene(image)].join("\n");
    },
    // Views are partial; the option `observations` says how many of them the text has.
    historyTurns: 0,
    names: ACTIONS,
    synonyms: { "turn left": 0, "turn right": 1, "go forward": 2 },
  });
}

/** Formats what is in view: the hands, the walls next to the agent, then all objects. */
export function formatScene(image: Uint8Array): string {
  const { carrying, walls, things } = readScene(image);
  const hands = carrying === undefined ? [] : [`You carry a ${carrying.color} ${carrying.kind}.`];
  const distances = Object.entries(walls).flatMap(([side, distance]) =>
    distance === undefined ? [] : [`${distance} ${side}`],
  );
  const sentences = [
    ...hands,
    ...(distances.length === 0 ? [] : [`Wall ${distances.join(", ")}.`]),
    ...(things.length === 0 ? [] : [`${capitalize(things.map(formatSight).join(", "))}.`]),
  ];
  return sentences.join(" ") || "Nothing near.";
}

function formatSight({ kind, color, state, ahead, right }: Sight): string {
  const side = right === 0 ? "" : ` ${Math.abs(right)} ${right < 0 ? "left" : "right"}`;
  return `${state === undefined ? "" : `${state} `}${color} ${kind}${side}${ahead === 0 ? "" : ` ${ahead} ahead`}`;
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
