import type { TextForm } from "../text-form.js";
import { lastNamedAction, signed } from "../text-parsing.js";
import { forceAction } from "./force-text.js";

const CHOICES = ["LEFT", "COAST", "RIGHT"];

const formatObservation = ([position, velocity]: Float32Array) =>
  `Car position: ${signed(position, 3)}, velocity: ${signed(velocity, 4)}`;

export const mountainCarText: TextForm<Float32Array, number> = {
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.5 on the right. Your action: LEFT, COAST or RIGHT",
  formatObservation,
  parseAction: (reply) => lastNamedAction(reply, CHOICES, { none: 1 }),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};

export const continuousMountainCarText: TextForm<Float32Array, Float32Array> = {
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.45 on the right with little force. Your action: a force from -1.0 (left) to +1.0 (right)",
  formatObservation,
  ...forceAction(1),
};
