import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction, formatSigned } from "../text-parsing.js";

const CHOICES = ["LEFT", "RIGHT"];

/** ORLLLaM's CartPole prompt, with its constant part in the system prompt. */
export const cartPoleText: TextInterface<Float32Array, number> = {
  systemPrompt: "Keep pole balanced on cart. You see the current state. Your action: LEFT or RIGHT",
  formatObservation: ([position, velocity, angle, angularVelocity]) =>
    `Cart position: ${formatSigned(position, 3)}, velocity: ${formatSigned(velocity, 3)}\n` +
    `Pole angle: ${formatSigned(angle, 3)} rad, angular velocity: ${formatSigned(angularVelocity, 3)}`,
  parseAction: (completion) => findLastNamedAction(completion, CHOICES),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};
