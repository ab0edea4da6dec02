import type { TextForm } from "../text-form.js";
import { lastNamedAction, signed } from "../text-parsing.js";

const CHOICES = ["LEFT", "RIGHT"];

/** ORLLLaM's words for CartPole; what never changes stands in the system prompt. */
export const cartPoleText: TextForm<Float32Array, number> = {
  systemPrompt: "Keep pole balanced on cart. You see the current state. Your action: LEFT or RIGHT",
  formatObservation: ([position, velocity, angle, angularVelocity]) =>
    `Cart position: ${signed(position, 3)}, velocity: ${signed(velocity, 3)}\n` +
    `Pole angle: ${signed(angle, 3)} rad, angular velocity: ${signed(angularVelocity, 3)}`,
  parseAction: (reply) => lastNamedAction(reply, CHOICES),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};
