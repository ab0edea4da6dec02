/**
 * Returns the source of a module with an environment of the built package: the actions "0" and "1",
 * with the given bodies of `reset` and `step`.
 */
export function choiceEnvSource(name: string, { reset, step }: { reset: string; step: string }): string {
  return `
import { Discrete, Env } from ${JSON.stringify(new URL("../../dist/envs.js", import.meta.url).href)};
export class ${name} extends Env {
  resets = 0;
  observationSpace = new Discrete(2);
  actionSpace = new Discrete(2);
  text = {
    systemPrompt: "Say 0 or 1.",
    formatObservation: String,
    formatAction: String,
    parseAction: Number,
    choices: () => ["0", "1"],
  };
  reset() { ${reset} }
  step() { ${step} }
}
`;
}
