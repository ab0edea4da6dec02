import { register } from "../envs/index.js";
import { TextWorldEnv } from "./text-world-env.js";

register({
  id: "TextWorld-v0",
  entryPoint: (options) => new TextWorldEnv(options),
  maxEpisodeSteps: 50,
  summary: "complete a quest in a text adventure",
  knownReturns: { random: 0.08, best: 1, basis: "page" },
  expert(env) {
    (env.unwrapped as TextWorldEnv).requestInfo("policyCommands");
    return (_observation, { policyCommands }) => (policyCommands as readonly string[])[0] ?? "look";
  },
  module: new URL("index.js", import.meta.url).href,
});
