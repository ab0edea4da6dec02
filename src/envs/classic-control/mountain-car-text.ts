import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction, formatSigned } from "../text-parsing.js";
import { createForceAction } from "./force-action.js";

const CHOICES = ["LEFT", "COAST", "RIGHT"];

const formatObservation = ([position, velocity]: Float32Array) =>
  `Car position: ${formatSigned(position, 3)}, velocity: ${formatSigned(velocity, 4)}`;

export const mountainCarText: TextInterface<Float32Array, number> = {
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.5 on the right. Your action: LEFT, COAST or RIGHT",
  formatObservation,
  parseAction: (completion) => findLastNamedAction(completion, CHOICES, { none: 1 }),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};

export const continuousMountainCarText: TextInterface<Float32Array, Float32Array> = {
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.45 on the right with little force. Your action: a force from -1.0 (left) to +1.0 (right)",
  formatObservation,
  ...createForceAction(1),
};
